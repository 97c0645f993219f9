//! The command line as people type it.

use crate::named::{Limit, QueryLimit};
use crate::orchestrator_flags::OrchestratorFlags;
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;
use std::time::Duration;
use trellis_domain::Since;
use trellis_domain::run::RunState;
use trellis_orchestrator::toolbox::openapi::SecretName;

/// Ask questions, and be able to prove how they were answered.
#[derive(Debug, Parser)]
#[command(name = "trellis", version, propagate_version = true)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    /// At a terminal, none asks for questions one after the other
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Options of all commands")]
pub(crate) struct Global {
    /// Folder that holds everything; else `TRELLIS_DATA`, else the platform's data directory
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// Server to work with instead of a folder; else `TRUSTGRAPH_URL` if no folder is named with --data; else the
    /// server that has the folder, if one has. Its token is taken from `TRUSTGRAPH_TOKEN`
    #[arg(long, global = true, value_name = "URL")]
    pub(crate) url: Option<String>,
    /// What `serve`, `worker`, `aggregator` and `status` were told; other commands have a `--state` of their own.
    #[clap(skip)]
    pub(crate) shared: Shared,
    /// Settings of this machine, in TOML; else `TRELLIS_SETTINGS`, else trellis/trellis.toml among the user's settings
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) settings: Option<PathBuf>,
    /// Model to ask, as openai/NAME, anthropic/NAME, ollama/NAME or rehearsal; more than one: each answers if those
    /// before it cannot; else `TRELLIS_MODEL`, else the one whose key or address is set
    #[arg(long, global = true, value_name = "PROVIDER/NAME", value_delimiter = ',')]
    pub(crate) model: Vec<String>,
    /// MCP servers whose tools may be called, as other programs have them (`mcpServers`); else `TRELLIS_MCP_CONFIG`;
    /// repeat for several. Its programs are started with the rights of this one
    #[arg(long, global = true, value_name = "FILE", value_delimiter = ',')]
    pub(crate) mcp_config: Vec<PathBuf>,
    /// Workspace; else the one of the token, else `default`
    #[arg(long, global = true, env = "TRUSTGRAPH_WORKSPACE")]
    pub(crate) workspace: Option<String>,
    /// Shape of the output
    #[arg(long, global = true, value_enum, default_value_t = Output::Text)]
    pub(crate) output: Output,
    /// Colour; also off with `NO_COLOR` or `TERM=dumb`
    #[arg(long, global = true, value_enum, default_value_t = Colour::Auto)]
    pub(crate) color: Colour,
    /// Plain marks instead of symbols
    #[arg(long, global = true)]
    pub(crate) ascii: bool,
    /// No progress on stderr
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
    /// Lines one below the other on a terminal, too, and answers as they were written
    #[arg(long, global = true)]
    pub(crate) plain: bool,
    /// Columns to write for; else those of the terminal, and whole lines where there is none
    #[arg(long, global = true, value_name = "COLUMNS", value_parser = clap::value_parser!(u16).range(20..))]
    pub(crate) width: Option<u16>,
}

/// Where the state is that several processes share.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Shared {
    /// State that several processes share instead of a folder, as `postgres://USER:PASSWORD@HOST:5432/NAME`; else
    /// `TRELLIS_STATE` if no folder is named with --data
    #[arg(long, value_name = "URL")]
    pub(crate) state: Option<String>,
    /// What wakes these processes up: amqp://… (RabbitMQ), nats://… (JetStream) or, in programs that were built with it,
    /// pulsar://… (Pulsar); else `TRELLIS_BUS`, else the state itself
    #[arg(long, value_name = "URL")]
    pub(crate) bus: Option<String>,
    /// SPARQL 1.1 endpoint that keeps the graph of finished runs, as http(s)://USER@HOST:3030/DATASET, also of a folder;
    /// else `TRELLIS_GRAPH`. Its password is taken from `TRELLIS_GRAPH_PASSWORD`, a token from `TRELLIS_GRAPH_TOKEN`
    #[arg(long, value_name = "URL")]
    pub(crate) graph: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// For people
    Text,
    /// One JSON object at the end
    Json,
    /// One JSON event per line as it happens (`ask`, `run watch`)
    Ndjson,
    /// Comma-separated values (`sparql`)
    Csv,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Colour {
    Auto,
    Always,
    Never,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Ask a question and stream the answer
    #[command(
        after_help = "Examples:\n  trellis ask \"Assess the risk profile of Company X as a potential partner\"\n  \
                            trellis ask \"And of Company Y?\" --conversation last\n  \
                            trellis ask - < question.txt > answer.md\n  \
                            trellis ask \"Should we open a second shop?\" --pattern debate --limit max-tokens=50000"
    )]
    Ask(Ask),
    /// Serve agents to TrustGraph's clients, to programs and to people
    Serve(Serve),
    /// Work on the runs of a state that several processes share: no address is listened at
    Worker(Worker),
    /// Only bring teams together: see whose agents have ended or run out of time. No model is asked
    Aggregator(Background),
    /// Be the agent orchestrator of a TrustGraph deployment, in place of its own
    Orchestrator(Box<OrchestratorFlags>),
    /// Be an MCP server for the program that starts this one: questions, answers and explanations as tools
    Mcp {
        /// A limit for runs that do not say otherwise, such as max-iterations=20; repeat for several
        #[arg(long, value_name = "NAME=VALUE")]
        limit: Vec<Limit>,
    },
    /// Go on with a run that was interrupted, or with all of them
    Resume {
        /// Run id, unique prefix, `last` or `@2`: its progress and its answer are shown as `ask` shows them
        run: Option<String>,
        /// A limit for runs that do not say otherwise, such as max-iterations=20; repeat for several
        #[arg(long, value_name = "NAME=VALUE")]
        limit: Vec<Limit>,
    },
    /// List runs, newest first
    #[command(after_help = "Examples:\n  trellis runs --state failed --since 2h\n  \
                            trellis runs --search \"Company X\" --output json | jq -r '.runs[].run_id'")]
    Runs(Runs),
    /// Look at one run
    #[command(subcommand)]
    Run(RunCommand),
    /// Show who works, what waits, what is in hand and what is waited for
    Status {
        /// Show it again every two seconds, until Ctrl-C
        #[arg(long)]
        watch: bool,
        #[command(flatten)]
        shared: Shared,
    },
    /// Check that a run's record is complete and unchanged
    Verify {
        /// Run id, unique prefix, `last` or `@2`
        run: String,
        /// Checkpoint that was kept, or - for standard input: fails if anything that it covers was changed
        #[arg(long, value_name = "FILE")]
        anchor: Option<PathBuf>,
    },
    /// The log that proves all records: print checkpoints of it, check them, write it for others
    #[command(subcommand)]
    Log(LogCommand),
    /// Erase what was said in a run; that it was erased stays on record
    Erase(Erase),
    /// Load files into a collection: RDF, documents, rows of tables
    Load(Load),
    /// Knowledge that is loaded: list and remove it
    #[command(subcommand)]
    Knowledge(KnowledgeCommand),
    /// Documents that are searched: remove one
    #[command(subcommand)]
    Documents(DocumentsCommand),
    /// Tables that are loaded: list, ask and remove them
    #[command(subcommand)]
    Tables(TablesCommand),
    /// Ask the graph of all runs and of what is loaded
    Sparql {
        /// SPARQL 1.1 query, or - for standard input
        query: String,
        /// Most rows to print
        #[arg(long, default_value_t = 10_000)]
        limit: usize,
        /// Seconds after which the query is given up, if that is less than what the operator allows
        #[arg(long)]
        timeout: Option<u64>,
        /// What a query may take on a folder, such as memory-mb=512 or time-s=120; repeat for several
        #[arg(long, value_name = "NAME=VALUE")]
        query_limit: Vec<QueryLimit>,
    },
    /// The graph of all runs: derive it anew from the records
    #[command(subcommand)]
    Graph(GraphCommand),
    /// Tell which task type and pattern a question would get; nothing else is done, and nothing is recorded
    #[command(after_help = "Example:\n  trellis route \"Assess the risk profile of Company X\"")]
    Route {
        /// The question, or - for standard input
        question: String,
    },
    /// Patterns, task types, tools, prompts: list, change and compare them, and who changed what
    #[command(subcommand)]
    Config(ConfigCommand),
    /// The tools that agents may call: list, try, add and remove them
    #[command(subcommand)]
    Tools(ToolsCommand),
    /// Ask the questions of a suite, judge the answers and report
    Eval(Eval),
    /// Print what a shell needs to complete commands
    #[command(
        after_help = "Examples:\n  trellis completions bash > ~/.local/share/bash-completion/completions/trellis\n  \
                            trellis completions zsh > ~/.zfunc/_trellis\n  \
                            trellis completions fish > ~/.config/fish/completions/trellis.fish"
    )]
    Completions {
        /// The shell that is to complete them
        shell: clap_complete::Shell,
    },
    /// Write a manual page for each command into a folder
    #[command(hide = true)]
    Man { folder: PathBuf },
    /// Read everything in the data folder and the configuration, and tell what is wrong and which model would be asked
    Doctor {
        /// Ask each configured model a few small questions instead, and tell what it can do
        #[arg(long)]
        models: bool,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Load {
    /// Files, folders or addresses
    #[arg(required = true, value_name = "FILE|DIR|URL")]
    pub(crate) sources: Vec<String>,
    /// Collection that they go into
    #[arg(long, default_value = "default", value_name = "NAME")]
    pub(crate) collection: String,
    /// What the files are, such as turtle or n-quads; else the ends of their names say it
    #[arg(long)]
    pub(crate) format: Option<String>,
    /// What relative IRIs are relative to; else the file itself
    #[arg(long, value_name = "IRI")]
    pub(crate) base: Option<String>,
    /// For rows: the table's schema, a configuration item of type `schema`; else one is made of the file
    #[arg(long, value_name = "NAME")]
    pub(crate) schema: Option<String>,
    /// For rows: how the text is written, if it is not Unicode: windows-1252
    #[arg(long, value_name = "NAME")]
    pub(crate) encoding: Option<String>,
    /// Go on with the next file after one that is wrong; fails with 11 in the end
    #[arg(long)]
    pub(crate) keep_going: bool,
    /// For documents: leave their facts out, also if a model for them is set
    #[arg(long)]
    pub(crate) no_facts: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum KnowledgeCommand {
    /// Collections and how much they have
    List,
    /// Remove all knowledge of a collection
    Remove {
        /// Name of the collection
        collection: String,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum DocumentsCommand {
    /// Remove a document: its passages, and all versions of it in the library
    Remove {
        /// What it was loaded as: the path or the address
        id: String,
        /// Collection that it is in
        #[arg(long, default_value = "default", value_name = "NAME")]
        collection: String,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum TablesCommand {
    /// Tables and how many rows they have
    List,
    /// Ask tables in GraphQL, such as '{ cities(limit: 5) { name } }'
    Query {
        /// GraphQL query, or - for standard input
        query: String,
        /// Collection whose tables are asked
        #[arg(long, default_value = "default", value_name = "NAME")]
        collection: String,
    },
    /// Remove a table with all its rows; its schema stays
    Remove {
        /// Name of the table
        table: String,
        /// Collection that it is in
        #[arg(long, default_value = "default", value_name = "NAME")]
        collection: String,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Eval {
    /// Questions with what counts as right, one JSON object per line
    pub(crate) suite: PathBuf,
    /// Models to compare, each by itself; else the one that `ask` would take, or with --replay all that were recorded
    #[arg(long, value_name = "PROVIDER/NAME", value_delimiter = ',')]
    pub(crate) models: Vec<String>,
    /// Patterns to compare; `auto` lets the router choose
    #[arg(long, value_name = "NAME", value_delimiter = ',', default_value = "auto")]
    pub(crate) patterns: Vec<String>,
    /// How often each question is asked
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) repeat: u32,
    /// Ask only the first so many questions
    #[arg(long, value_name = "N")]
    pub(crate) first: Option<usize>,
    /// Questions at a time
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) at_once: u16,
    /// Folder with what the tool `search` looks into; else `documents` beside the suite
    #[arg(long, value_name = "DIR")]
    pub(crate) documents: Option<PathBuf>,
    /// Data folder of an earlier evaluation: what models replied there answers, and no model is asked. A question that they
    /// were not asked in these words is reported as not covered
    #[arg(long, value_name = "DIR")]
    pub(crate) replay: Option<PathBuf>,
    /// Earlier report to compare with; fails with 11 if something that was right is wrong now
    #[arg(long, value_name = "FILE")]
    pub(crate) baseline: Option<PathBuf>,
    /// Where the report goes as JSON, which is what --baseline takes
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
    /// Where the report goes as a page
    #[arg(long, value_name = "FILE")]
    pub(crate) page: Option<PathBuf>,
}

#[derive(Debug, Default, Args)]
pub(crate) struct Ask {
    /// The question, or - for standard input
    pub(crate) question: String,
    /// Use this pattern instead of letting the router choose
    #[arg(long)]
    pub(crate) pattern: Option<String>,
    /// Use this task type instead of letting the router choose
    #[arg(long)]
    pub(crate) task_type: Option<String>,
    /// Tool group; repeat for several, * for all
    #[arg(long)]
    pub(crate) group: Vec<String>,
    /// Only this tool may be offered; repeat for several
    #[arg(long, value_name = "NAME")]
    pub(crate) tool: Vec<String>,
    /// Collection whose documents, knowledge and tables tools look into, if they name none themselves
    #[arg(long, default_value = "default", value_name = "NAME")]
    pub(crate) collection: String,
    /// Conversation that the question belongs to; `last` for that of the newest run
    #[arg(long, value_name = "ID|last")]
    pub(crate) conversation: Option<String>,
    /// Session id; the same question under the same id attaches to its run
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
    /// A limit of this run, such as max-iterations=20 or fan-in-timeout-ms=2000; repeat for several
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) limit: Vec<Limit>,
    /// Do not stream text while it is written
    #[arg(long)]
    pub(crate) no_stream: bool,
    /// Exit with 11 if the answer rests on partial findings
    #[arg(long)]
    pub(crate) strict: bool,
    /// Leave the run to the server: print its id and return at once
    #[arg(long, conflicts_with_all = ["timeout", "strict"])]
    pub(crate) detach: bool,
    /// Stop waiting after so long, such as 90s or 10m, with 130. At a server the run goes on, on a folder `resume` does
    #[arg(long, value_name = "TIME", value_parser = parse_span)]
    pub(crate) timeout: Option<Duration>,
}

#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// Address to listen at
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:8888", env = "TRELLIS_LISTEN")]
    pub(crate) listen: String,
    /// File with a line `NAME TOKEN [WORKSPACE…]` per user, who sees these workspaces only, `default` if none is
    /// named; the token in `TRELLIS_TOKEN` is the operator's and sees all
    #[arg(long, value_name = "FILE", env = "TRELLIS_TOKENS")]
    pub(crate) tokens: Option<PathBuf>,
    /// Let everybody in who can reach the address, also from other machines
    #[arg(long)]
    pub(crate) no_auth: bool,
    /// A limit for runs that do not say otherwise, such as max-iterations=20; repeat for several
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) limit: Vec<Limit>,
    /// What a query of the graph may take, such as memory-mb=512, time-s=120 or at-once=8; repeat for several
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) query_limit: Vec<QueryLimit>,
    /// Seconds that calls in flight may take to finish once the server is asked to stop
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    pub(crate) drain: u64,
    #[command(flatten)]
    pub(crate) shared: Shared,
    /// With --state: take questions and tell of answers, and let other processes work on them
    #[arg(long)]
    pub(crate) no_workers: bool,
    /// Shape of the log on stderr
    #[arg(long, value_enum, default_value_t = LogFormat::Text, env = "TRELLIS_LOG_FORMAT")]
    pub(crate) log_format: LogFormat,
}

impl Command {
    /// Where this command was told that the state is.
    pub(crate) fn shared(&self) -> Shared {
        if let Self::Serve(Serve { shared, .. })
        | Self::Worker(Worker { background: Background { shared, .. }, .. })
        | Self::Aggregator(Background { shared, .. })
        | Self::Status { shared, .. } = self
        {
            shared.clone()
        } else {
            Shared::default()
        }
    }

    /// The shape of its log, if it is one that goes on until it is stopped.
    pub(crate) const fn log_format(&self) -> Option<LogFormat> {
        if let Self::Serve(serve) = self {
            Some(serve.log_format)
        } else if let Self::Worker(Worker { background, .. }) | Self::Aggregator(background) = self {
            Some(background.log_format)
        } else {
            None
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct Worker {
    /// Leave it to `trellis aggregator` to bring teams together
    #[arg(long)]
    pub(crate) no_aggregation: bool,
    #[command(flatten)]
    pub(crate) background: Background,
}

/// What all processes have that nobody talks to.
#[derive(Debug, Args)]
pub(crate) struct Background {
    #[command(flatten)]
    pub(crate) shared: Shared,
    /// Seconds that calls in flight may take to finish once it is asked to stop
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    pub(crate) drain: u64,
    /// Shape of the log on stderr
    #[arg(long, value_enum, default_value_t = LogFormat::Text, env = "TRELLIS_LOG_FORMAT")]
    pub(crate) log_format: LogFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// For people
    Text,
    /// One JSON object per line
    Json,
}

#[derive(Debug, Args)]
pub(crate) struct Runs {
    /// Only runs in this state
    #[arg(long, visible_alias = "status", value_parser = parse_state)]
    pub(crate) state: Option<RunState>,
    /// Only runs of this pattern
    #[arg(long)]
    pub(crate) pattern: Option<String>,
    /// Only runs of this task type
    #[arg(long, value_name = "NAME")]
    pub(crate) task_type: Option<String>,
    /// Only runs that began then or later: a span back from now such as 2h or 7d, a day, or a moment in UTC
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<Since>,
    /// Only runs of this conversation
    #[arg(long, value_name = "ID")]
    pub(crate) conversation: Option<String>,
    /// Only runs whose question contains this in its first 300 characters
    #[arg(long, value_name = "TEXT")]
    pub(crate) search: Option<String>,
    /// How many
    #[arg(long, default_value_t = 20)]
    pub(crate) limit: usize,
    /// Go on where an earlier list ended
    #[arg(long)]
    pub(crate) cursor: Option<String>,
}

fn parse_state(word: &str) -> Result<RunState, String> {
    word.parse().map_err(|_| format!("choose one of {}", RunState::WORDS.join(", ")))
}

fn parse_span(text: &str) -> Result<Duration, String> {
    match text.parse::<Since>() {
        Ok(Since::Back { seconds }) if seconds > 0 => Ok(Duration::from_secs(seconds.into())),
        Ok(Since::Back { .. } | Since::Moment(_)) | Err(_) => Err("write a span such as 90s, 10m or 2h".to_owned()),
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum RunCommand {
    /// Show the steps of a run
    Show {
        /// Run id, unique prefix, `last` or `@2`
        run: String,
        /// Whole texts instead of their beginnings
        #[arg(long)]
        full: bool,
        /// Only this step, with everything on record of it: options and choice, prompt, reply, usage. A step as `run why` names it
        /// (`routing`, `call 1`, `finding 0`, `#0 call 1`, `answer`), the number of a call or step, or its IRI
        #[arg(long, value_name = "N|STEP|IRI", conflicts_with = "full")]
        step: Option<String>,
    },
    /// Follow a run from its beginning to its end, as `ask` does
    Watch {
        /// Run id, unique prefix, `last` or `@2`
        run: String,
        /// Exit with 11 if the answer rests on partial findings
        #[arg(long)]
        strict: bool,
    },
    /// Print only the answer of a run; the exit code tells its state, as that of `ask` does
    Answer {
        /// Run id, unique prefix, `last` or `@2`
        run: String,
        /// Exit with 11 if the answer rests on partial findings
        #[arg(long)]
        strict: bool,
    },
    /// End a run that has not ended
    Cancel {
        /// Run id, unique prefix, `last` or `@2`
        run: String,
    },
    /// Answer a question that a run waits for, such as whether a tool may be called
    Decide {
        /// Run id, unique prefix, `last` or `@2`
        run: String,
        /// One of the options, such as `approve` or `deny`
        choice: String,
        /// Why, in your own words; it is on record, and the model is told
        #[arg(long)]
        reason: Option<String>,
        /// What the call is to be made with instead, as a JSON object
        #[arg(long)]
        arguments: Option<String>,
        /// With the choice `result`: what the call has brought
        #[arg(long)]
        result: Option<String>,
        /// With the choice `answer`: what the tool asks for, as a JSON object with the fields of its form
        #[arg(long)]
        content: Option<String>,
        /// Which question is meant, if several are open: `SESSION/park/1`
        #[arg(long)]
        question: Option<String>,
    },
    /// Tell a run something while it is under way
    ///
    /// Whatever its models are asked next, they are told this as well; all agents at work hear it.
    Tell {
        /// Run id, unique prefix, `last` or `@2`
        run: String,
        /// The message, such as "only look at the last two years"
        message: String,
    },
    /// Tell in sentences what an answer, a step or a sentence of the answer rests on
    ///
    /// What the answer cites is on record; sources that use the same words as a sentence are only a comparison of texts, and are
    /// called so.
    #[command(after_help = "Examples:\n  trellis run why last\n  trellis run why last \"finding 0\"\n  \
                            trellis run why last \"Equity covers a third of the balance sheet\"")]
    Why {
        /// Run id, unique prefix, `last` or `@2`
        run: String,
        /// A step, as `run show` and `run decisions` name it (`routing`, `finding 0`, `step 2`, `call 1`, `#0`), or a sentence of the
        /// answer; else the answer
        #[arg(value_name = "STEP|SENTENCE")]
        about: Option<String>,
    },
    /// List the decisions of a run: options, choice, who chose, where the options came from, enforced or checked
    Decisions {
        /// Run id, unique prefix, `last` or `@2`
        run: String,
    },
    /// Compare two runs: the first decision that differs, option sets, costs, answers
    Diff {
        /// Run id, unique prefix, `last` or `@2`
        run: String,
        /// The run to compare it with
        other: String,
    },
    /// Tell where the time of a run went: what ran, and what waited
    Slow {
        /// Run id, unique prefix, `last` or `@2`
        run: String,
        /// How many of the longest calls are listed
        #[arg(long, default_value_t = 10, value_name = "N")]
        top: usize,
    },
    /// Write a run's provenance as RDF
    Export {
        /// Run id, unique prefix, `last` or `@2`
        run: String,
        /// Syntax; Turtle leaves out the name of the graph
        #[arg(long, value_enum, default_value_t = ExportFormat::Turtle)]
        format: ExportFormat,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    Turtle,
    Nquads,
    Jsonld,
}

#[derive(Debug, Subcommand)]
pub(crate) enum LogCommand {
    /// Print a checkpoint to keep elsewhere: it proves later that nothing was changed
    Checkpoint,
    /// Check that everything that a checkpoint covers is still there, unchanged
    Verify {
        /// File with the checkpoint, or - for standard input
        checkpoint: PathBuf,
        /// Public key that must have signed it, as `trellis log key` prints it
        #[arg(long)]
        key: Option<String>,
    },
    /// Print the public key that checkpoints are signed with
    Key,
    /// Write a checkpoint and all entries as lines of JSON, for others to check
    Export {
        /// File to write; standard output if none is named
        file: Option<PathBuf>,
    },
}

#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("what").required(true).args(["run", "conversation"]))]
pub(crate) struct Erase {
    /// Run id, unique prefix, `last` or `@2`
    pub(crate) run: Option<String>,
    /// All runs of this conversation
    #[arg(long, value_name = "ID")]
    pub(crate) conversation: Option<String>,
    /// Only texts in which this occurs
    #[arg(long, value_name = "TEXT")]
    pub(crate) text: Option<String>,
    /// Why, for the record
    #[arg(long)]
    pub(crate) reason: String,
}

#[derive(Debug, Subcommand)]
pub(crate) enum GraphCommand {
    /// Derive the view anew from the records
    Rebuild,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ToolsCommand {
    /// List tools, and say which cannot be called here
    List,
    /// Call a tool once and print what a model would be shown
    Test {
        /// Name of the tool, as `trellis tools list` has it
        name: String,
        /// NAME=VALUE for each argument, or one JSON object
        arguments: Vec<String>,
        /// Call it although it is unsafe: every call changes something more
        #[arg(long = "unsafe")]
        may_be_unsafe: bool,
    },
    /// Add a tool
    Add(AddTool),
    /// Remove a tool
    Remove {
        /// Name of the tool, as `trellis tools list` has it
        name: String,
    },
    /// List what the MCP servers of --mcp-config have, and add it as tools
    Discover {
        /// Only this server
        server: Option<String>,
        /// Add what is listed, or change it to what the servers say now
        #[arg(long)]
        add: bool,
        /// Only these tools, with commas between them
        #[arg(long, value_name = "TOOL", value_delimiter = ',')]
        only: Vec<String>,
    },
}

#[derive(Debug, Args)]
pub(crate) struct AddTool {
    /// What models call it
    pub(crate) name: String,
    /// JSON, @FILE to read a file, or - for standard input; `http` with --openapi
    pub(crate) value: Option<String>,
    /// `OpenAPI` document in JSON, version 3.0 or 3.1: one of its operations becomes the tool
    #[arg(long, value_name = "FILE|URL")]
    pub(crate) openapi: Option<String>,
    /// Which of them: its `operationId`, or method and path such as "GET /cities/{city}"
    #[arg(long, value_name = "ID", requires = "openapi")]
    pub(crate) operation: Option<String>,
    /// Address to use instead of the server that the document names
    #[arg(long, value_name = "URL", requires = "openapi")]
    pub(crate) server: Option<String>,
    /// Secret of the operator that holds the key which the operation needs; repeat as SCHEME=NAME if it needs several
    #[arg(long, value_name = "NAME", requires = "openapi")]
    pub(crate) secret: Vec<SecretName>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// List items
    List {
        /// Only this type: tool, prompt, agent-pattern, agent-task-type and so on
        #[arg(value_name = "TYPE")]
        kind: Option<String>,
    },
    /// Print an item's value
    Get {
        /// Type of the item, such as tool
        #[arg(value_name = "TYPE")]
        kind: String,
        /// Key of the item, as `config list` has it
        key: String,
        /// The value at this version of the configuration, such as the `trellis:configVersion` of a choice
        #[arg(long, value_name = "VERSION")]
        at: Option<u64>,
    },
    /// Show which pattern each task type allows, and which are not offered
    Matrix,
    /// List what changed, in all items that there are, the newest version first
    Log {
        /// How many versions
        #[arg(long, default_value_t = 20)]
        limit: usize,
    },
    /// List the versions of the configuration that changed an item
    History {
        /// Type of the item, such as tool
        #[arg(value_name = "TYPE")]
        kind: String,
        /// Key of the item, as `config list` has it
        key: String,
    },
    /// Compare two versions of the configuration: which items came, went and changed, and how
    Diff {
        /// A version, as `config log` lists them
        from: u64,
        /// The version to compare it with; else the one in force
        to: Option<u64>,
    },
    /// Write an item
    Put {
        /// Type of the item, such as tool
        #[arg(value_name = "TYPE")]
        kind: String,
        /// Key of the item, as `config list` has it
        key: String,
        /// JSON, @FILE to read a file, or - for standard input
        value: String,
    },
    /// Delete an item
    Delete {
        /// Type of the item, such as tool
        #[arg(value_name = "TYPE")]
        kind: String,
        /// Key of the item, as `config list` has it
        key: String,
    },
    /// Write all items as JSON, to a file or standard output
    Export {
        /// File to write; standard output if none is named
        file: Option<PathBuf>,
    },
    /// Read items from an exported file; none is written if one is invalid
    Import {
        /// File that `config export` has written
        file: PathBuf,
    },
    /// Check exported files, or the configuration in force if none is given
    Validate {
        /// Files that `config export` has written
        files: Vec<PathBuf>,
    },
}

#[cfg(test)]
#[path = "cli_tests.rs"]
mod tests;
