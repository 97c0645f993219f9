//! Whatever was derived by another projection is derived anew, if the number says so.

use crate::projector::project;
use crate::projector::tests::fixture::{plan_run, react_run, supervisor_run};
use trellis_domain::Hash;
use trellis_provenance::{Format, PROJECTION, export};

#[test]
fn the_number_of_the_projection_changes_with_its_quads() {
    let text = |records: &[trellis_domain::record::Record]| export(&project(records), Format::NQuads).unwrap();
    let all = [text(&react_run()), text(&plan_run()), text(&supervisor_run())].concat();
    let known = (4, "9004e4a10a4b9e813f1b14ddee414d93a0e678690280b9351522565584836700");
    assert_eq!(
        (PROJECTION, Hash::of(all).to_string().as_str()),
        known,
        "the same records give other quads: raise `PROJECTION` and note number and hash here"
    );
}
