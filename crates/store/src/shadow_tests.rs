use super::*;
use crate::{Holder, Store};
use trellis_domain::Workspace;
use trellis_domain::config::StoredItem;
use trellis_orchestrator::ports::{Config, ConfigError, JournalError, RealWorld};

fn holder() -> Holder {
    Holder { pid: std::process::id(), command: "test".into(), url: None }
}

fn item(key: &str) -> StoredItem {
    StoredItem { kind: "mine".to_owned(), key: key.to_owned(), value: "1".to_owned() }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shadow_has_all_that_the_original_has_and_whoever_wants_more_kept_is_refused() {
    let (original, place) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let (workspace, by) = (Workspace::default(), trellis_domain::Caller::program());
    {
        let store = Store::open(original.path(), &holder(), Arc::new(RealWorld)).unwrap();
        store.config.put(&workspace, vec![item("known")], by.clone()).await.unwrap();
    }
    let shadow = Shadow::make(original.path(), "for a test", place.path(), None).unwrap();
    let store = Store::open_shadow(shadow, &holder(), Arc::new(RealWorld)).unwrap();
    assert_eq!((store.path(), store.only_read()), (original.path(), Some("for a test")));
    assert_eq!(store.config.get(&workspace, "mine", "known").await.unwrap().as_deref(), Some("1"));
    // What the program brings up to date is for this process alone.
    store.config.put(&workspace, vec![item("new")], by).await.unwrap();
    assert_eq!(store.config.get(&workspace, "mine", "new").await.unwrap().as_deref(), Some("1"));
    let refused = store.config.pin(&workspace).await.unwrap_err();
    let ConfigError::Store(JournalError::Write(reason)) = refused else { panic!("{refused}") };
    let expected = format!("{}: for a test; free some space", original.path().display());
    assert!(reason.starts_with(&expected), "{reason}");
    drop(store);
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0, "it goes with its reader");
    let store = Store::open(original.path(), &holder(), Arc::new(RealWorld)).unwrap();
    assert_eq!(store.config.get(&workspace, "mine", "new").await.unwrap(), None);
}
