//! HTTP, WebSocket and SSE.
