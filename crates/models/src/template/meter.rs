//! What a rendering may use. Everything that grows asks here before it grows, so that no template can take more
//! memory or time than this, whatever it does.

use super::fault::{Fault, Outcome};
use std::cell::Cell;
use std::fmt;
use std::rc::Rc;

/// How many steps a template may take: a hundred times what a prompt over ten thousand facts takes, and done within a
/// second or two.
const WORK: u64 = 10_000_000;
/// Bytes that are copied, compared or searched in the time of one step.
const BYTES_PER_STEP: usize = 64;
/// All values of a rendering together, with what was rendered so far. Each of them, written out, is no larger either,
/// so that lists which hold the same list twice, again and again, do not explode when they are read.
pub(super) const MEMORY: usize = 32 << 20;
/// No model reads as much.
pub(super) const LONGEST_PROMPT: usize = 16 << 20;
/// Calls within calls; a thread's stack holds some hundreds.
const DEPTH: usize = 120;

/// The account of one rendering.
#[derive(Debug)]
pub(super) struct Meter {
    work: Cell<u64>,
    held: Cell<usize>,
    depth: Cell<usize>,
}

impl Meter {
    pub(super) fn new() -> Rc<Self> {
        Rc::new(Self { work: Cell::new(WORK), held: Cell::new(0), depth: Cell::new(0) })
    }

    /// Pays for some steps.
    pub(super) fn steps(&self, steps: usize) -> Outcome<()> {
        let left = self.work.get().checked_sub(steps as u64).ok_or(Fault::TooMuchWork)?;
        self.work.set(left);
        Ok(())
    }

    /// Pays for reading or writing so many bytes.
    pub(super) fn bytes(&self, bytes: usize) -> Outcome<()> {
        self.steps(1 + bytes / BYTES_PER_STEP)
    }

    /// Pays for a value of this size, which is about to be made.
    pub(super) fn hold(self: &Rc<Self>, bytes: usize) -> Outcome<Held> {
        let mut held = Held { meter: Rc::clone(self), bytes: 0 };
        held.grow(bytes)?;
        Ok(held)
    }

    /// Goes one call deeper.
    pub(super) fn deeper<T>(&self, work: impl FnOnce() -> Outcome<T>) -> Outcome<T> {
        let depth = self.depth.get();
        if depth >= DEPTH {
            return Err(Fault::new("it is nested too deeply; does a macro call itself?"));
        }
        self.depth.set(depth + 1);
        let result = work();
        self.depth.set(depth);
        result
    }
}

/// Memory that is in use until this is dropped.
#[derive(Debug)]
pub(super) struct Held {
    meter: Rc<Meter>,
    bytes: usize,
}

impl Held {
    fn grow(&mut self, bytes: usize) -> Outcome<()> {
        self.meter.bytes(bytes)?;
        let held = self.meter.held.get().saturating_add(bytes);
        if held > MEMORY {
            return Err(Fault::TooLarge { bytes: MEMORY });
        }
        self.meter.held.set(held);
        self.bytes += bytes;
        Ok(())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.meter.held.set(self.meter.held.get().saturating_sub(self.bytes));
    }
}

/// A text that is being written, and pays before it grows.
#[derive(Debug)]
pub(super) struct Writer {
    text: String,
    held: Held,
    longest: usize,
    /// Written and not paid for yet: less than a step.
    owed: usize,
    /// Why it could not be written on.
    fault: Option<Fault>,
}

impl Writer {
    /// A value.
    pub(super) fn new(meter: &Rc<Meter>) -> Self {
        Self::up_to(meter, MEMORY)
    }

    /// What is rendered in the end.
    pub(super) fn of_prompt(meter: &Rc<Meter>) -> Self {
        Self::up_to(meter, LONGEST_PROMPT)
    }

    fn up_to(meter: &Rc<Meter>, longest: usize) -> Self {
        let held = Held { meter: Rc::clone(meter), bytes: 0 };
        Self { text: String::new(), held, longest, owed: 0, fault: None }
    }

    pub(super) fn push(&mut self, text: &str) -> Outcome<()> {
        let length = self.text.len() + text.len();
        if length > self.longest {
            let bytes = self.longest;
            return Err(if bytes == LONGEST_PROMPT { Fault::TooLong { bytes } } else { Fault::TooLarge { bytes } });
        }
        let capacity = self.text.capacity();
        if length > capacity {
            let wanted = length.max((2 * capacity).min(self.longest));
            self.held.grow(wanted - capacity)?;
            self.text.reserve_exact(wanted - self.text.len());
        }
        // A single character takes longer than its share of a long text.
        self.owed += text.len().max(8);
        self.held.meter.steps(self.owed / BYTES_PER_STEP)?;
        self.owed %= BYTES_PER_STEP;
        self.text.push_str(text);
        Ok(())
    }

    /// The same text again and again.
    pub(super) fn push_times(&mut self, text: &str, times: usize) -> Outcome<()> {
        const PORTION: usize = 4096;
        let length = text.len().checked_mul(times).filter(|length| *length <= self.longest);
        let Some(_) = length else { return Err(Fault::TooLarge { bytes: self.longest }) };
        if text.is_empty() {
            return Ok(());
        }
        let at_once = (PORTION / text.len()).clamp(1, times.max(1));
        if at_once == 1 {
            return (0..times).try_for_each(|_| self.push(text));
        }
        let portion = text.repeat(at_once);
        for _ in 0..times / at_once {
            self.push(&portion)?;
        }
        (0..times % at_once).try_for_each(|_| self.push(text))
    }

    /// Something that knows how it is written.
    pub(super) fn show(&mut self, shown: impl fmt::Display) -> Outcome<()> {
        use fmt::Write as _;
        match write!(self, "{shown}") {
            Ok(()) => Ok(()),
            Err(fmt::Error) => Err(self.fault.take().unwrap_or_else(|| Fault::new("it cannot be written"))),
        }
    }

    pub(super) fn finish(mut self) -> (String, Held) {
        self.text.shrink_to_fit();
        (self.text, self.held)
    }
}

impl fmt::Write for Writer {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.push(text).map_err(|fault| {
            self.fault = Some(fault);
            fmt::Error
        })
    }
}
