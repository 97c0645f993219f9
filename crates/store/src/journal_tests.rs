use super::*;
use crate::store::Store;
use trellis_domain::ConversationId;
use trellis_orchestrator::ports::RealWorld;

/// However many look for runs, sessions are loaded and conversations go on.
#[tokio::test]
async fn searches_hold_up_nobody_else() {
    let folder = tempfile::TempDir::new().unwrap();
    let holder = crate::Holder { pid: 1, command: "test".to_owned(), url: None };
    let store = Store::open(folder.path(), &holder, Arc::new(RealWorld)).unwrap();
    let (journal, workspace, id) = (&store.journal, Workspace::default(), SessionId::new("s").unwrap());
    let places = LISTS.acquire_many(2).await.unwrap();
    let time_limit = Duration::from_millis(200);
    let search = RunFilter { search: Some("x".to_owned()), ..RunFilter::default() };
    let waiting = tokio::time::timeout(time_limit, journal.runs(&workspace, &search, None, 1)).await;
    assert!(waiting.is_err(), "there is no place for one more search");
    assert!(journal.load(&workspace, &id).await.unwrap().is_none());
    assert!(journal.run(&workspace, &id).await.unwrap().is_none());
    let conversation = Some(ConversationId::new("c").unwrap());
    let talk = RunFilter { conversation, ..RunFilter::default() };
    assert!(journal.runs(&workspace, &talk, None, 1).await.unwrap().runs.is_empty());
    drop(places);
    assert!(journal.runs(&workspace, &search, None, 1).await.unwrap().runs.is_empty());
}
