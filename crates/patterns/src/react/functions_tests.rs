use super::*;

fn argument(name: &str, kind: &str) -> ArgumentItem {
    ArgumentItem::new(name, kind, &format!("the {name}"))
}

pub(crate) fn tool(name: &str, arguments: &[(&str, &str)]) -> Arc<ToolItem> {
    Arc::new(ToolItem::function(
        name,
        &format!("does {name}"),
        arguments.iter().map(|(name, kind)| argument(name, kind)).collect(),
    ))
}

pub(crate) fn search() -> Vec<Arc<ToolItem>> {
    vec![tool("web search", &[("query", "string"), ("most", "integer")])]
}

fn names(functions: &Functions) -> Vec<&str> {
    functions.iter().map(|function| function.name.as_str()).collect()
}

#[test]
fn names_are_simple_and_no_two_alike() {
    let long = "x".repeat(70);
    let tools = ["web search", "web_search", "final_answer", "Übersicht", "", &long, "web?search"];
    let functions = Functions::of(&tools.map(|name| tool(name, &[])));
    let shortened = "x".repeat(64);
    let expected = [
        "web_search_2",
        "web_search",
        "final_answer_2",
        "_bersicht",
        "tool",
        &shortened,
        "web_search_3",
        "final_answer",
    ];
    assert_eq!(names(&functions), expected);
    for (tool, name) in tools.iter().zip(expected) {
        assert!(matches!(&functions.meant(name).unwrap().does, Does::Call(called) if called.name == *tool), "{name}");
    }
    assert_eq!(functions.meant("web search").unwrap().name, "web_search_2", "a model may say the tool's own name");
    assert_eq!(functions.meant("telepathy"), None);
}

#[test]
fn two_tools_of_one_name_are_two_functions() {
    let functions = Functions::of(&[tool("a", &[]), tool("a", &[])]);
    assert_eq!(names(&functions), ["a", "a_2", "final_answer"]);
}

#[test]
fn every_function_takes_a_thought_first_and_all_its_arguments() {
    let functions = Functions::of(&search());
    let function = functions.meant("web_search").unwrap();
    let schema = function.schema();
    let members: Vec<_> = schema["properties"].as_object().unwrap().keys().collect();
    assert_eq!(members, ["thought", "query", "most"]);
    assert_eq!(schema["required"], json!(["thought", "query", "most"]));
    assert_eq!(schema["properties"]["most"]["type"], "integer");
    assert_eq!(function.description(), "web search: does web search");
}
