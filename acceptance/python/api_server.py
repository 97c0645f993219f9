"""An API of FastAPI's at the port that is named, which publishes its description by itself."""

import sys

import uvicorn
from fastapi import Depends, FastAPI, HTTPException, Query
from fastapi.security import HTTPBearer
from pydantic import BaseModel, Field

app = FastAPI(title="Forecasts")
bearer = HTTPBearer()


class Units(BaseModel):
    name: str = Field(max_length=10)


class Wish(BaseModel):
    place: str
    days: int = Field(default=1, ge=1, le=7)
    units: Units | None = None


@app.get("/forecast/{place}")
def forecast(place: str, tag: list[str] = Query(default=[]), days: int | None = Query(default=None, ge=1, le=7)):
    """The forecast for a place."""
    if "Atlantis" in place:
        raise HTTPException(404, "there is no such place")
    return {"text": f"Snow tomorrow: {place}", "tags": tag, "days": days}


@app.get("/snow/{place}")
def snow(place: str):
    """How much snow there is in a place."""
    return {"text": f"Snow tomorrow: {place}"}


@app.post("/wishes", dependencies=[Depends(bearer)])
def wish(wish: Wish, token=Depends(bearer)):
    """Wish for some weather."""
    return {"text": f"Noted for {wish.place}, {wish.days} days", "token": token.credentials == "sk-wish"}


uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="error")
