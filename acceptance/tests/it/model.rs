//! The scripted model is itself checked by a client that nobody here wrote.

use acceptance::{ScriptedModel, run_python};

#[tokio::test]
#[ignore = "needs the stock clients: run `cargo xtask test`"]
async fn the_openai_package_understands_the_scripted_model() {
    let model = ScriptedModel::start().await;
    run_python("openai_package.py", model.url()).await.ok().says(&["openai: all well"]);
    assert!(model.asked().contains(&"agent-react".to_owned()));
}
