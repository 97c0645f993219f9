//! Whether the tests type everything that the pages say, and why not where they do not.

use super::pages::{self, Block, Page};
use std::collections::BTreeSet;
use std::path::Path;

/// Commands of a page that nobody types here, each by how it begins.
struct Untyped {
    page: &'static str,
    commands: &'static [&'static str],
    /// What they need, and which file has what is tested of them.
    why: &'static str,
}

static UNTYPED: [Untyped; 17] = [
    Untyped {
        page: "README.md",
        commands: &[
            "export OPENAI_API_KEY=",
            "export OPENAI_BASE_URL=",
            "export ANTHROPIC_API_KEY=",
            "export OLLAMA_HOST=",
            "trellis ask … --model openai/gpt-4.1 --model ollama/llama3.2",
        ],
        why: "need keys and servers of providers: crates/trellis/tests/it/models.rs asks one that is scripted",
    },
    Untyped {
        page: "docs/api.md",
        commands: &[
            "tg-invoke-agent -v",
            "tg-list-explain-traces",
            "tg-show-explain-trace urn:trustgraph:agent:",
            "tg-show-tools",
            "tg-set-tool …",
            "tg-show-prompts",
        ],
        why: "need TrustGraph's packages: acceptance/tests/it/commands/cases.rs types them where these are installed",
    },
    Untyped {
        page: "docs/deploy.md",
        commands: &[
            "export TRELLIS_STATE=",
            "trellis serve --no-workers",
            "trellis worker",
            "trellis aggregator",
            "trellis status",
        ],
        why: "need a server of PostgreSQL: crates/trellis/tests/it/cluster.rs starts all of them on one",
    },
    Untyped {
        page: "docs/deploy.md",
        commands: &["export TRELLIS_GRAPH_PASSWORD=", "trellis serve --graph"],
        why: "need a SPARQL endpoint: crates/trellis/tests/it/remote_graph.rs starts Fuseki for them",
    },
    Untyped {
        page: "docs/documents.md",
        commands: &[
            "trellis load handbook/ report.pdf --collection handbook",
            "curl localhost:8888/api/v1/flow/default/service/text-load",
            "curl localhost:8888/api/v1/flow/default/service/document-load",
            "base64 -w0 report.pdf",
        ],
        why: "need a handbook and a report: crates/trellis/tests/it/documents.rs loads others, on a folder and at a server",
    },
    Untyped {
        page: "docs/documents.md",
        commands: &["trellis serve"],
        why: "needs a model for embeddings: crates/trellis/tests/it/documents.rs has one that is scripted",
    },
    Untyped {
        page: "docs/documents.md",
        commands: &["trellis load handbook/ --collection handbook", "trellis sparql PREFIX prov:"],
        why: "need a model for facts: crates/trellis/tests/it/facts.rs has one that is scripted",
    },
    Untyped {
        page: "docs/evaluation.md",
        commands: &["trellis eval eval/react-20.jsonl"],
        why: "needs a model: crates/trellis/tests/it/evaluated.rs asks the questions of a suite",
    },
    Untyped {
        page: "docs/evaluation.md",
        commands: &["cargo xtask evaluate", "cargo xtask corpus", "cargo xtask referees"],
        why: "fetch a lot and take long: acceptance/tests/it/real.rs and acceptance/tests/it/referees/mod.rs take samples",
    },
    Untyped {
        page: "docs/install.md",
        commands: &[
            "sha256sum --check SHA256SUMS",
            "tar --extract --file trellis-",
            "sudo install trellis-",
            "sudo dpkg --install trellis_",
            "trellis --version",
        ],
        why: "need the archive and the package: xtask/src/dist.rs unpacks, installs and runs what it makes",
    },
    Untyped {
        page: "docs/tools.md",
        commands: &[
            "trellis tools add weather @weather.json",
            "trellis tools test weather",
            "trellis tools remove weather",
        ],
        why: "need a service at an address: crates/trellis/tests/it/tools.rs has one",
    },
    Untyped {
        page: "docs/tools.md",
        commands: &[
            "trellis run decide last continue",
            "trellis run decide last retry",
            "trellis run decide last result --result",
        ],
        why: "need a process that died during a call: crates/trellis/tests/it/uncertain.rs leaves such calls behind",
    },
    Untyped {
        page: "docs/tools.md",
        commands: &["trellis tools add forecast http --openapi", "trellis tools add wish http --openapi"],
        why: "need a service that describes itself: crates/trellis/tests/it/tools.rs has one",
    },
    Untyped {
        page: "docs/tools.md",
        commands: &[
            "trellis tools discover --mcp-config mcp.json",
            "trellis tools discover files --add",
            "trellis tools test read_file",
            "trellis ask What do my notes say of moss?",
        ],
        why: "need MCP servers of others: crates/trellis/tests/it/mcp.rs has its own",
    },
    Untyped {
        page: "docs/tools.md",
        commands: &["trellis run decide last answer --content", "trellis run decide last decline"],
        why: "need an MCP server that asks: crates/trellis/tests/it/mcp_asking.rs has one",
    },
    Untyped {
        page: "docs/trustgraph.md",
        commands: &["trellis orchestrator --data /var/lib/trellis"],
        why: "needs RabbitMQ: crates/trellis/tests/it/trustgraph.rs starts both",
    },
    Untyped {
        page: "docs/trustgraph.md",
        commands: &["export TRELLIS_STATE=", "trellis orchestrator --id agent-manager"],
        why: "need RabbitMQ and PostgreSQL: crates/trellis/tests/it/trustgraph.rs starts them",
    },
];

/// Pages with the headings that tests follow, as it stands in the source of these tests.
fn followed() -> BTreeSet<(&'static str, &'static str)> {
    let named = |call: &'static str| {
        let mut quoted = call.trim_start().strip_prefix('"')?.split('"');
        Some((quoted.next()?, quoted.nth(1)?))
    };
    include_str!("mod.rs").split(".follows(").skip(1).filter_map(named).collect()
}

/// Whether a test follows what this page says here. What an example says is followed where its packages are installed,
/// by the name of its folder and from the first heading.
fn is_followed(page: &Page, block: &Block, followed: &BTreeSet<(&str, &str)>, examples: &str) -> bool {
    let example = page.name.strip_prefix("examples/").and_then(|rest| rest.strip_suffix("/README.md"));
    let is_named = example.is_some_and(|name| examples.contains(&format!(", \"{name}\", ")));
    let is_first = || page.blocks().first().is_some_and(|first| first.heading == block.heading);
    followed.contains(&(page.name.as_str(), block.heading.as_str())) || is_named && is_first()
}

/// Commands that no test types: the page, the line, and the command.
fn left(pages: &[Page]) -> Vec<(String, usize, String)> {
    let followed = followed();
    let examples = std::fs::read_to_string(pages::project().join("acceptance/tests/it/examples.rs")).unwrap();
    let mut left = Vec::new();
    for page in pages {
        let blocks = page.blocks().into_iter().filter(Block::is_shell);
        for block in blocks.filter(|block| !is_followed(page, block, &followed, &examples)) {
            let lines = pages::lines(&block.text, block.line).into_iter();
            left.extend(lines.map(|line| (page.name.clone(), line.number, line.words.join(" "))));
        }
    }
    left
}

/// Where the list has a command.
fn listed(page: &str, command: &str) -> Option<(&'static Untyped, &'static str)> {
    UNTYPED.iter().filter(|untyped| untyped.page == page).find_map(|untyped| {
        let start = untyped.commands.iter().find(|start| command.starts_with(**start))?;
        Some((untyped, *start))
    })
}

#[test]
fn a_command_that_no_test_types_has_a_reason() {
    let left = left(&pages::all());
    let forgotten = left.iter().filter(|(page, _, command)| listed(page, command).is_none());
    let forgotten: Vec<_> = forgotten.map(|(page, line, command)| format!("{page}:{line}: {command}")).collect();
    let mend = "let a test follow the heading (documented/mod.rs), or say why not (documented/untyped.rs)";
    assert!(forgotten.is_empty(), "no test types these; {mend}:\n{}", forgotten.join("\n"));
}

#[test]
fn the_list_names_only_commands_that_are_left_and_files_that_are_there() {
    let left = left(&pages::all());
    let used: BTreeSet<_> = left
        .iter()
        .filter_map(|(page, _, command)| listed(page, command).map(|(untyped, start)| (untyped.page, start)))
        .collect();
    for untyped in &UNTYPED {
        for start in untyped.commands {
            assert!(used.contains(&(untyped.page, *start)), "{}: {start} is typed, or is not there", untyped.page);
        }
        let mut files = untyped
            .why
            .split(' ')
            .filter(|word| Path::new(word).extension().is_some_and(|kind| kind == "rs"))
            .peekable();
        assert!(files.peek().is_some(), "{}: {} names no test", untyped.page, untyped.why);
        for file in files {
            assert!(pages::project().join(file).is_file(), "{}: there is no {file}", untyped.page);
        }
    }
}

#[test]
fn a_new_command_is_noticed_wherever_it_stands() {
    assert!(listed("docs/deploy.md", "trellis serve --no-workers").is_some());
    assert!(listed("docs/deploy.md", "trellis doctor").is_none(), "beside others that are listed");
    assert!(listed("docs/install.md", "trellis serve --no-workers").is_none(), "on another page");
    let followed = followed();
    assert!(followed.contains(&("README.md", "Your own tool")) && followed.contains(&("docs/audit.md", "All runs")));
    assert!(!followed.contains(&("README.md", "Your own model")), "a new heading");
}
