use super::*;

/// A masked frame: its head, then as much of its content as is sent.
fn frame(code: u8, last: bool, length: usize, sent: usize) -> Vec<u8> {
    let mut bytes = vec![code | if last { 0x80 } else { 0 }];
    match length {
        0..=125 => bytes.push(0x80 | u8::try_from(length).unwrap()),
        126..=0xffff => {
            bytes.push(0xfe);
            bytes.extend(u16::try_from(length).unwrap().to_be_bytes());
        }
        _ => {
            bytes.push(0xff);
            bytes.extend((length as u64).to_be_bytes());
        }
    }
    bytes.extend([1, 2, 3, 4]);
    bytes.extend(std::iter::repeat_n(b'x', sent));
    bytes
}

fn known(memory: &RequestMemory) -> Count {
    Count { stranger: None, ..Count::new(memory.clone()) }
}

const TEXT: u8 = 1;
const MORE: u8 = 0;
const PING: u8 = 9;

#[test]
fn a_message_takes_its_room_with_its_head_and_gives_it_back() {
    let memory = RequestMemory::new();
    let free = memory.free();
    let mut count = known(&memory);
    count.read(&frame(TEXT, true, 1 << 20, 10)).unwrap();
    assert_eq!(free - memory.free(), 1 << 20, "although next to nothing of it has come");
    count.read(&vec![b'x'; (1 << 20) - 10]).unwrap();
    let place = count.whole.pop_front().expect("it is whole");
    assert_eq!(free - memory.free(), 1 << 20);
    drop(place);
    assert_eq!(memory.free(), free);
}

#[test]
fn fragments_count_together_whatever_comes_between_and_however_it_is_cut() {
    let memory = RequestMemory::new();
    let free = memory.free();
    let mut count = known(&memory);
    let mut all = frame(TEXT, false, 3000, 3000);
    all.extend(frame(PING, true, 5, 5));
    all.extend(frame(MORE, false, 0, 0));
    all.extend(frame(MORE, true, 3000, 3000));
    all.extend(frame(TEXT, true, 7, 7));
    for byte in all {
        count.read(&[byte]).unwrap();
    }
    assert_eq!(count.whole.len(), 2);
    assert_eq!(free - memory.free(), 12_000);
    drop(count);
    assert_eq!(memory.free(), free);
}

#[test]
fn there_is_no_room_for_more_than_there_is_room_for() {
    let memory = RequestMemory::new();
    let mut all: Vec<_> = (0..bounds::HELD / bounds::BODY).map(|_| known(&memory)).collect();
    for count in &mut all {
        count.read(&frame(TEXT, true, bounds::BODY, 0)).unwrap();
    }
    assert_eq!(known(&memory).read(&frame(TEXT, true, 100_000, 0)), Err(Breach::Full));
    assert_eq!(known(&memory).read(&frame(TEXT, true, 1000, 0)), Ok(()), "a short one needs none");
    drop(all);
    assert_eq!(known(&memory).read(&frame(TEXT, true, 100_000, 0)), Ok(()));
}

#[test]
fn a_stranger_is_listened_to_for_a_little_only() {
    let memory = RequestMemory::new();
    let stranger = || Count::new(memory.clone());
    assert_eq!(stranger().read(&frame(TEXT, true, bounds::SMALL, 0)), Ok(()));
    assert_eq!(stranger().read(&frame(TEXT, true, bounds::SMALL + 1, 0)), Err(Breach::Stranger));
    let mut in_pieces = stranger();
    in_pieces.read(&frame(TEXT, false, 40_000, 40_000)).unwrap();
    assert_eq!(in_pieces.read(&frame(MORE, true, 40_000, 0)), Err(Breach::Stranger));
    let mut pinging = stranger();
    let pings = std::iter::repeat_with(|| pinging.read(&frame(PING, true, 125, 125)));
    assert_eq!(pings.take(10_000).find(Result::is_err), Some(Err(Breach::Stranger)));
}

#[test]
fn pings_are_answered_as_long_as_the_answers_are_read() {
    let memory = RequestMemory::new();
    let mut count = known(&memory);
    for _ in 0..10_000 {
        count.read(&frame(PING, true, 125, 125)).unwrap();
        count.wrote(&Poll::Ready(Ok(127)));
    }
    count.wrote(&Poll::Pending);
    let pings = std::iter::repeat_with(|| count.read(&frame(PING, true, 125, 125)));
    assert_eq!(pings.take(10_000).position(|read| read == Err(Breach::Deaf)), Some(bounds::SMALL / 127));
}
