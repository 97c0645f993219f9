//! What is done with the calls of a model, judged with material that others have made. The tests take a sample of it, `cargo
//! xtask referees` everything.
#![allow(clippy::print_stdout, reason = "figures are printed for those who ask for them")]

mod bank;
mod bfcl;
mod dojo;
mod tau2;
