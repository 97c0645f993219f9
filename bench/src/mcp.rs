//! What a call over MCP costs besides the work of the tool: a server that answers at once, over HTTP on this machine.

use anyhow::{Context, Result, bail};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use trellis_domain::config::{ConfigItem, Settings, ToolItem, validate};
use trellis_domain::{Collection, Scope};
use trellis_models::{Rehearsal, TemplatePrompter};
use trellis_orchestrator::permits::Permit;
use trellis_orchestrator::ports::{CallInput, RealWorld, ToolCall, ToolRunner, World};
use trellis_tools::mcp::{Mcp, read_servers};
use trellis_tools::{Outside, Tools};

const CALLS: usize = 2_000;
const AT_ONCE: usize = 100;

pub(crate) async fn run() -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream));
        }
    });
    let file =
        json!({ "mcpServers": { "s": { "url": format!("http://{address}/mcp"), "maxConcurrentCalls": AT_ONCE } } });
    let servers = read_servers(&file.to_string(), &|_| None).map_err(anyhow::Error::msg)?;
    let mcp = Mcp::new(servers, trellis_tools::http::Reach::default(), None);
    // No model is asked.
    let world: Arc<dyn World> = Arc::new(RealWorld);
    let prompter = Arc::new(TemplatePrompter::new(Arc::new(Rehearsal::instant()), world));
    let tools = Arc::new(Tools::new(prompter).with(Outside { mcp, ..Outside::default() }));
    let tool = tool()?;
    call(&tools, &tool).await?;
    let mut times = Vec::with_capacity(CALLS);
    for _ in 0..CALLS {
        let begun = Instant::now();
        call(&tools, &tool).await?;
        times.push(begun.elapsed());
    }
    let raw = raw(address).await?;
    times.sort_unstable();
    let ms = |time: Duration| time.as_secs_f64() * 1_000.0;
    let (median, p95) = (times[CALLS / 2], times[CALLS * 95 / 100]);
    println!(
        "mcp           {:.2} ms per call over HTTP here, {:.2} ms at the 95th percentile (target 2); {:.2} ms for the same \
         bytes over a bare connection",
        ms(median),
        ms(p95),
        ms(raw)
    );
    let begun = Instant::now();
    let all = (0..AT_ONCE).map(|_| call(&tools, &tool));
    futures_util::future::try_join_all(all).await?;
    println!("              {AT_ONCE} calls at once: {:.0} ms for all", ms(begun.elapsed()));
    Ok(())
}

fn tool() -> Result<Arc<ToolItem>> {
    let item = json!({ "type": "mcp-tool", "server": "s", "mcp-tool": "now" }).to_string();
    match validate("tool", "now", &item) {
        Ok(ConfigItem::Tool(tool)) => Ok(tool),
        other => bail!("{other:?}"),
    }
}

async fn call(tools: &Tools, tool: &Arc<ToolItem>) -> Result<()> {
    let call = ToolCall {
        scope: Scope::default(),
        collection: Collection::default(),
        settings: Arc::new(Settings::default()),
        tool: Arc::clone(tool),
        arguments: Map::from_iter([("city".to_owned(), json!("Oslo"))]),
        idempotency_key: "k".to_owned(),
        step: None,
        document: None,
        timeout: Duration::from_secs(10),
        max_reply_bytes: 1 << 20,
        labels: None,
        permit: Permit::default(),
        input: CallInput::Nobody,
    };
    let brought = tools.call(call).await?;
    if brought.text == "7 degrees" { Ok(()) } else { bail!("it brought {}", brought.text) }
}

/// The same bytes to and fro, without anything around them.
async fn raw(address: std::net::SocketAddr) -> Result<Duration> {
    let mut stream = BufReader::new(TcpStream::connect(address).await?);
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "now" } }).to_string();
    let request = format!("POST /mcp HTTP/1.1\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    let mut times = Vec::with_capacity(CALLS);
    for _ in 0..CALLS {
        let begun = Instant::now();
        stream.write_all(request.as_bytes()).await?;
        message(&mut stream).await?.context("it closed the connection")?;
        times.push(begun.elapsed());
    }
    times.sort_unstable();
    Ok(times[CALLS / 2])
}

/// Answers as older servers do, whatever it is asked.
async fn serve(stream: TcpStream) -> Result<()> {
    stream.set_nodelay(true)?;
    let mut stream = BufReader::new(stream);
    while let Some(body) = message(&mut stream).await? {
        let request: Value = serde_json::from_slice(&body).unwrap_or_default();
        let id = &request["id"];
        let result = match request["method"].as_str().unwrap_or_default() {
            "initialize" => json!({ "protocolVersion": "2025-03-26", "capabilities": {},
                "serverInfo": { "name": "s", "version": "1" } }),
            "tools/call" => json!({ "content": [{ "type": "text", "text": "7 degrees" }] }),
            _ => Value::Null,
        };
        let (status, body) = match (id.is_null(), result.is_null()) {
            (true, _) => ("202 Accepted", String::new()),
            (false, true) => ("400 Bad Request", String::new()),
            (false, false) => ("200 OK", json!({ "jsonrpc": "2.0", "id": id, "result": result }).to_string()),
        };
        let head =
            format!("HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n", body.len());
        stream.write_all((head + &body).as_bytes()).await?;
    }
    Ok(())
}

/// The body of the next message; none at the end.
async fn message(stream: &mut BufReader<TcpStream>) -> Result<Option<Vec<u8>>> {
    let (mut line, mut headers) = (String::new(), BTreeMap::new());
    while stream.read_line(&mut line).await? > 2 {
        if let Some((name, value)) = line.split_once(':') {
            headers.insert(name.to_lowercase(), value.trim().to_owned());
        }
        line.clear();
    }
    let Some(length) = headers.get("content-length") else { return Ok(None) };
    let mut body = vec![0; length.parse()?];
    stream.read_exact(&mut body).await?;
    Ok(Some(body))
}
