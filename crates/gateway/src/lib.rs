//! The gateway: HTTP, WebSocket and server-sent events in front of the loop.
//!
//! Four surfaces share one set of services. The stock TrustGraph clients speak to `/api/v1/socket` and
//! `/api/v1/…` in their own dialect, programs that are made for OpenAI to `/v1`, other agents to `/mcp`; programs of our
//! users speak to `/api/v1/runs`. The gateway owns how things are said. It decides nothing and stores nothing: the loop and the ports behind it do. A client that goes
//! away stops nothing but its own stream.

mod access;
mod api;
mod bearer;
mod bounds;
mod call;
mod calls;
mod capacity;
mod checks;
mod docs;
mod documents;
mod error;
mod figures;
mod frames;
mod guests;
mod health;
mod import;
mod import_rows;
mod inside;
mod json;
mod knocks;
mod line;
mod loads;
mod mcp;
mod members;
mod openai;
mod outbox;
mod page;
mod parquet;
mod peer;
mod request_memory;
mod responses;
mod rest;
mod server;
mod services;
mod socket;
mod unread;
mod upload;
mod wiring;

pub use access::{Access, Identity, Reach, Token};
pub use calls::Calls;
pub use inside::Gateway;
pub use mcp::{McpError, serve_streams};
pub use server::{Server, router};
pub use wiring::{Founder, ParquetReader, Phase, RunText, Wiring};
