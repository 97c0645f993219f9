"""Makes the Parquet files beside it, with PyPI `pyarrow` 26: python make.py"""

import datetime
import decimal
import pathlib
import uuid

import pyarrow as pa
import pyarrow.parquet as pq

HERE = pathlib.Path(__file__).parent
UTC = datetime.timezone.utc
MOMENT = datetime.datetime(2024, 2, 29, 12, 30, 0, 500_000)


def types() -> pa.Table:
    """Two rows: one with a value of each type, and one without any."""
    columns = {
        "id": (pa.int64(), 7),
        "small": (pa.int8(), -3),
        "large": (pa.uint64(), 18_000_000_000_000_000_000),
        "price": (pa.float64(), 2.5),
        "share": (pa.float32(), 0.1),
        "nothing": (pa.float64(), float("nan")),
        "open": (pa.bool_(), True),
        "zip": (pa.string(), "00712"),
        "kind": (pa.dictionary(pa.int32(), pa.string()), "red"),
        "day": (pa.date32(), datetime.date(2024, 2, 29)),
        "at_ms": (pa.time32("ms"), datetime.time(12, 30)),
        "at_ns": (pa.time64("ns"), datetime.time(12, 30, 0, 1)),
        "local": (pa.timestamp("us"), MOMENT),
        "instant": (pa.timestamp("ms", tz="UTC"), MOMENT.replace(tzinfo=UTC)),
        "exact": (pa.timestamp("ns", tz="UTC"), MOMENT.replace(tzinfo=UTC)),
        "money": (pa.decimal128(10, 2), decimal.Decimal("-12.30")),
        "count": (pa.decimal128(18, 0), decimal.Decimal("123456789012345678")),
        "huge": (pa.decimal128(38, 4), decimal.Decimal("1234567890123456789012345678901234.5678")),
        "key": (pa.uuid(), uuid.UUID("12345678-1234-5678-1234-567812345678").bytes),
        "raw": (pa.binary(), b"\x00\xff"),
        "tags": (pa.list_(pa.string()), ["a", None]),
        "place": (pa.struct([("x", pa.int32()), ("y", pa.list_(pa.float32()))]), {"x": 1, "y": [0.5]}),
        "words": (pa.map_(pa.string(), pa.int32()), [("one", 1)]),
    }
    fields = [pa.field(name, kind) for name, (kind, _) in columns.items()]
    arrays = [array(kind, value) for kind, value in columns.values()]
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


def array(kind: pa.DataType, value) -> pa.Array:
    if isinstance(kind, pa.UuidType):
        return pa.ExtensionArray.from_storage(kind, pa.array([value, None], pa.binary(16)))
    return pa.array([value, None], kind)


def cities(count: int) -> pa.Table:
    return pa.table({"id": range(count), "name": [f"City {number}" for number in range(count)]})


pq.write_table(types(), HERE / "types.parquet", store_schema=False)
old = pa.table({"at": pa.array([MOMENT], pa.timestamp("ns"))})
pq.write_table(old, HERE / "int96.parquet", use_deprecated_int96_timestamps=True, store_schema=False)
for codec in ["none", "snappy", "gzip", "brotli", "lz4", "zstd"]:
    pq.write_table(cities(100), HERE / f"{codec}.parquet", compression=codec, row_group_size=40, store_schema=False)
# A few hundred bytes that are as many rows as one likes, of 900 KB each.
repeated = pa.DictionaryArray.from_arrays(pa.array([0] * 2_000, pa.int32()), pa.array(["x" * 900_000]))
pq.write_table(pa.table({"text": repeated}), HERE / "repeated.parquet", compression="zstd", store_schema=False)
# One page that unpacks to more than a gigabyte.
flat = pa.table({"text": pa.array(["x" * (64 << 20)] * 20, pa.large_string())})
pq.write_table(
    flat,
    HERE / "bomb.parquet",
    compression="brotli",
    use_dictionary=False,
    data_page_size=4 << 30,
    write_statistics=False,
    store_schema=False,
)
