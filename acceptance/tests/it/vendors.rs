//! What vendors document as refused is left out or said in another way: the run ends with an answer, and its record
//! tells each refusal.

use acceptance::Asking;
use acceptance::vendor::trouble::{self, TOO_LONG, TooLong};
use acceptance::vendor::{Exchange, Form, Rule, Vendor, anthropic, compatible, mistral, openai};
use serde_json::Value;

const QUESTION: &str = "Who was Ada?";
const ANSWER: &str = "The script answers: Who was Ada?";

/// What became of one question.
struct Outcome {
    answer: String,
    /// The parameters of requests that were in vain, from the record.
    failed: Vec<Value>,
    exchanges: Vec<Exchange>,
}

impl Outcome {
    /// These words were refused with, in this order, and each refusal is on record with what was sent.
    fn tells(&self, words: &[&str]) {
        let refused = self.exchanges.iter().filter_map(|exchange| Some((exchange, exchange.refused.as_ref()?)));
        let (refused, said): (Vec<_>, Vec<_>) = refused.unzip();
        let mut rest = said.iter();
        for word in words {
            assert!(rest.any(|said| said.contains(word)), "{word} in its place: {said:#?}");
        }
        let sent: Vec<_> = refused.iter().map(|exchange| parameters(&exchange.body)).collect();
        let recorded: Vec<_> = self.failed.iter().map(parameters).collect();
        assert_eq!(recorded, sent);
    }

    /// The last request under this prompt, which was taken.
    fn taken(&self, prompt: &str) -> &Value {
        let taken = self.exchanges.iter().rev().find(|one| one.prompt == prompt && one.refused.is_none());
        &taken.unwrap_or_else(|| panic!("no request of {prompt} was taken: {:#?}", self.exchanges)).body
    }

    /// How often a request with this member was refused.
    fn refused_with(&self, member: &str) -> usize {
        self.exchanges.iter().filter(|one| one.refused.is_some() && one.body.get(member).is_some()).count()
    }
}

/// The names of what is set in a request, besides what is said in it.
fn parameters(request: &Value) -> Vec<&String> {
    let said = ["address", "messages", "system"];
    let names = request.as_object().into_iter().flatten().map(|(name, _)| name);
    let mut names: Vec<_> = names.filter(|name| !said.contains(&name.as_str())).collect();
    names.sort();
    names
}

/// Asks a server that keeps these rules, with everything set that can be.
async fn ask(form: Form, rules: &[Rule]) -> Outcome {
    let vendor = Vendor::start(form, rules.iter().copied()).await;
    let asking = Asking::with(vendor.environment("moss-1"))
        // As the vendor itself would be asked.
        .set("TRELLIS_MODELS_ONE_CALL_ROUTING", "true")
        .set("TRELLIS_MODELS_TEMPERATURE", "0.2")
        .set("TRELLIS_MODELS_TOP_P", "0.9")
        .set("TRELLIS_MODELS_MAX_TOKENS", "500");
    let answer = asking.answer(QUESTION, &[]).await;
    Outcome { answer, failed: asking.failed_attempts().await, exchanges: vendor.exchanges() }
}

/// What OpenAI demands of every request.
const OPENAI: [Rule; 2] = [openai::strict_schemas_are_closed, openai::calls_are_answered];
/// What Anthropic demands of every request.
const ANTHROPIC: [Rule; 4] = [
    anthropic::needs_max_tokens,
    anthropic::roles_alternate,
    anthropic::results_follow_calls,
    anthropic::schemas_are_closed,
];
/// What Mistral demands of every request.
const MISTRAL: [Rule; 4] = [
    mistral::ids_have_nine_letters,
    mistral::last_is_no_assistant,
    mistral::roles_are_in_order,
    mistral::no_other_members,
];

#[tokio::test]
#[ignore = "needs the program: run `cargo xtask test`"]
async fn nothing_is_refused_by_what_every_model_demands() {
    for (form, rules) in [(Form::Chat, &OPENAI[..]), (Form::Messages, &ANTHROPIC), (Form::Ollama, &[][..])] {
        let outcome = ask(form, rules).await;
        assert_eq!(outcome.answer, ANSWER, "{form:?}");
        assert!(outcome.failed.is_empty() && outcome.exchanges.iter().all(|one| one.refused.is_none()), "{form:?}");
    }
}

#[tokio::test]
#[ignore = "needs the program: run `cargo xtask test`"]
async fn reasoning_models_of_openai() {
    let own: [Rule; 4] =
        [openai::no_temperature, openai::no_top_p, openai::no_max_tokens, openai::functions_need_no_effort];
    let outcome = ask(Form::Chat, &[&OPENAI[..], &own].concat()).await;
    assert_eq!(outcome.answer, ANSWER);
    outcome.tells(&["'temperature' does not support 0.2", "'top_p'", "'max_tokens'", "reasoning_effort"]);
    let taken = outcome.taken("agent-react");
    assert_eq!((&taken["reasoning_effort"], &taken["max_completion_tokens"]), (&"none".into(), &500.into()), "{taken}");
    assert!(taken["tools"].is_array() && taken["tool_choice"] == "required", "{taken}");
    assert!(outcome.taken("route").get("reasoning_effort").is_none(), "it may think where it calls nothing");
    assert_eq!(outcome.refused_with("temperature"), 1, "it is known after the first refusal");
}

#[tokio::test]
#[ignore = "needs the program: run `cargo xtask test`"]
async fn the_newest_models_of_anthropic() {
    let own: [Rule; 2] = [anthropic::no_temperature, anthropic::no_forced_tool];
    let outcome = ask(Form::Messages, &[&ANTHROPIC[..], &own].concat()).await;
    assert_eq!(outcome.answer, ANSWER);
    outcome.tells(&["`temperature` may only be set to 1", "tool_choice forces tool use"]);
    assert_eq!(outcome.taken("agent-react")["tool_choice"]["type"], "auto");
    assert_eq!(outcome.taken("route")["output_config"]["format"]["type"], "json_schema");
}

#[tokio::test]
#[ignore = "needs the program: run `cargo xtask test`"]
async fn models_of_anthropic_that_take_one_way_to_sample() {
    let outcome = ask(Form::Messages, &[&ANTHROPIC[..], &[anthropic::not_both_samplings as Rule]].concat()).await;
    assert_eq!(outcome.answer, ANSWER);
    outcome.tells(&["cannot both be specified"]);
}

#[tokio::test]
#[ignore = "needs the program: run `cargo xtask test`"]
async fn older_models_of_anthropic() {
    let outcome = ask(Form::Messages, &[&ANTHROPIC[..], &[anthropic::no_output_config as Rule]].concat()).await;
    assert_eq!(outcome.answer, ANSWER);
    outcome.tells(&["output_config: Extra inputs"]);
    assert_eq!(outcome.taken("route")["tool_choice"]["name"], "reply");
}

#[tokio::test]
#[ignore = "needs the program: run `cargo xtask test`"]
async fn mistral_takes_no_members_that_it_does_not_name() {
    let rules = [&MISTRAL[..], &[mistral::forces_by_any as Rule]].concat();
    let outcome = ask(Form::MistralChat, &rules).await;
    assert_eq!(outcome.answer, ANSWER);
    outcome.tells(&["stream_options", "tool_choice"]);
    assert!(outcome.taken("agent-react")["tools"].is_array());
}

/// The ids of calls that another vendor gave are none for Mistral.
#[tokio::test]
#[ignore = "needs the program: run `cargo xtask test`"]
async fn mistral_goes_on_with_a_conversation_of_another_vendor() {
    let first = Vendor::start(Form::Messages, [trouble::out_of_credit as Rule]).await;
    let second = Vendor::start(Form::MistralChat, MISTRAL).await;
    let asking = Asking::with([first.environment("moss-1"), second.environment("moss-2")].concat());
    let models = ["--pattern", "react", "--model", "anthropic/moss-1", "--model", "openai/moss-2"];
    assert_eq!(asking.answer(QUESTION, &models).await, ANSWER);
    let refused: Vec<_> = second.exchanges().into_iter().filter_map(|exchange| exchange.refused).collect();
    assert!(!refused.iter().any(|words| words.contains("Tool call id")), "{refused:#?}");
}

#[tokio::test]
#[ignore = "needs the program: run `cargo xtask test`"]
async fn gemini_at_its_compatible_address() {
    let outcome = ask(Form::Chat, &[compatible::gemini_knows_no_strict]).await;
    assert_eq!(outcome.answer, ANSWER);
    outcome.tells(&["at 'tools[0].function': Cannot find field"]);
    assert!(outcome.taken("agent-react")["tools"].is_array());
}

#[tokio::test]
#[ignore = "needs the program: run `cargo xtask test`"]
async fn older_models_of_gemini_at_its_compatible_address() {
    let rules: [Rule; 2] = [compatible::gemini_knows_no_strict, compatible::gemini_knows_no_closed_schemas];
    let outcome = ask(Form::Chat, &rules).await;
    assert_eq!(outcome.answer, ANSWER);
    outcome.tells(&["additionalProperties", "strict"]);
}

#[tokio::test]
#[ignore = "needs the program: run `cargo xtask test`"]
async fn models_of_groq_without_schemas() {
    let outcome = ask(Form::Chat, &[compatible::groq_knows_no_schema]).await;
    assert_eq!(outcome.answer, ANSWER);
    outcome.tells(&["does not support response format `json_schema`"]);
}

/// A reply that does not follow the schema is chance: the schema is sent again, now and later.
#[tokio::test]
#[ignore = "needs the program: run `cargo xtask test`"]
async fn a_reply_that_groq_could_not_validate_is_asked_for_again() {
    let outcome = ask(Form::Chat, &[compatible::groq_fails_once]).await;
    assert_eq!(outcome.answer, ANSWER);
    outcome.tells(&["Failed to validate JSON"]);
    assert_eq!(outcome.taken("route")["response_format"]["json_schema"]["strict"], true);
}

/// Neither is a call that could not be read a reason to offer no functions any more.
#[tokio::test]
#[ignore = "needs the program: run `cargo xtask test`"]
async fn a_call_that_groq_could_not_read_is_asked_for_again() {
    let vendor = Vendor::start(Form::Chat, [compatible::groq_fails_to_call_once as Rule]).await;
    let asking = Asking::with(vendor.environment("moss-1"));
    assert_eq!(asking.answer(QUESTION, &["--pattern", "react"]).await, ANSWER);
    let exchanges = vendor.exchanges();
    let functions = |one: &&Exchange| one.prompt == "agent-react" && one.body["tools"][0]["function"]["strict"] == true;
    assert_eq!(exchanges.iter().filter(functions).count(), 3, "refused, asked again, answered: {exchanges:#?}");
}

#[tokio::test]
#[ignore = "needs the program: run `cargo xtask test`"]
async fn cohere_at_its_compatible_address() {
    let outcome = ask(Form::Chat, &[compatible::cohere_knows_no_parallel_calls]).await;
    assert_eq!(outcome.answer, ANSWER);
    outcome.tells(&["'parallel_tool_calls' is not a valid field"]);
    assert!(outcome.taken("agent-react")["tools"].is_array());
}

#[tokio::test]
#[ignore = "needs the program: run `cargo xtask test`"]
async fn vllm_without_a_parser_for_calls() {
    let outcome = ask(Form::Chat, &[compatible::vllm_calls_no_functions]).await;
    assert_eq!(outcome.answer, ANSWER);
    outcome.tells(&["--enable-auto-tool-choice"]);
    let taken = outcome.taken("agent-react");
    assert!(taken.get("tools").is_none(), "the tools are in the text: {taken}");
}

#[tokio::test]
#[ignore = "needs the program: run `cargo xtask test`"]
async fn who_is_busy_is_asked_again_when_it_says_so() {
    for (form, rule) in
        [(Form::Chat, trouble::two_too_many as Rule), (Form::Messages, trouble::twice_overloaded as Rule)]
    {
        let outcome = ask(form, &[rule]).await;
        assert_eq!(outcome.answer, ANSWER);
        outcome.tells(&[if form == Form::Chat { "429" } else { "529" }]);
    }
}

/// A long result of a tool is shown whole, refused, and shown as an excerpt.
#[tokio::test]
#[ignore = "needs the program: run `cargo xtask test`"]
async fn a_prompt_that_is_too_long_is_asked_again_with_less() {
    let notes: Vec<_> = (0..900).map(|n| format!("Note {n}.")).collect();
    let question = format!("Who was Ada? {}", notes.join(" "));
    for TooLong { vendor: name, rule } in TOO_LONG {
        let form = if *name == "anthropic" { Form::Messages } else { Form::Chat };
        let vendor = Vendor::start(form, [*rule]).await;
        let asking = Asking::with(vendor.environment("moss-1"));
        let answer = asking.answer(&question, &["--pattern", "react"]).await;
        assert!(answer.starts_with("The script answers: Who was Ada? Note 0."), "{name}: {answer}");
        let refused = vendor.exchanges().iter().filter(|one| one.refused.is_some()).count();
        assert!(refused > 0, "{name} was never asked for too much");
        assert_eq!(asking.failed_attempts().await.len(), refused, "{name}");
    }
}
