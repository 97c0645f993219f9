//! One module per group of stock clients. What needs the Python environment is ignored by plain `cargo test`.
#![allow(clippy::unwrap_used, reason = "a test may fail loudly")]

mod access;
mod agent;
mod bodies;
mod collections;
mod commands;
mod config;
mod description;
mod documents;
mod examples;
mod explain;
mod flows;
mod graph;
mod graph_rag;
mod knowledge;
mod library;
mod log;
mod mcp;
mod mcp_served;
mod model;
mod moving;
mod openai;
mod operations;
mod own_client;
mod prompts;
mod real;
mod referees;
mod sdk;
mod tables;
mod tools;
#[cfg(unix)]
mod trustgraph;
mod vendors;
