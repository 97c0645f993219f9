use super::*;

#[test]
fn no_more_verdicts_are_remembered_than_there_is_room_for_and_no_long_ones() {
    let mut verdicts = Verdicts::default();
    let key = |number: usize| (Workspace::default(), RunId::new(&format!("r{number}")).unwrap(), 7, 0);
    for number in 0..REMEMBERED + 10 {
        verdicts.remember(key(number), &Verdict::Checked(Vec::new()));
    }
    verdicts.remember(key(0), &Verdict::Checked(vec!["x".repeat(LONGEST)]));
    assert_eq!((verdicts.known.len(), verdicts.oldest.len()), (REMEMBERED, REMEMBERED));
    assert_eq!(verdicts.known.get(&key(0)), None);
    assert!(verdicts.known.contains_key(&key(REMEMBERED + 9)));
}
