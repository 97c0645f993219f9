//! Whatever was derived by another projection is derived anew, if the number says so.

use crate::projector::project;
use crate::projector::tests::fixture::{plan_run, react_run, supervisor_run};
use trellis_domain::Hash;
use trellis_provenance::{Format, PROJECTION, export};

#[test]
fn the_number_of_the_projection_changes_with_its_quads() {
    let text = |records: &[trellis_domain::record::Record]| export(&project(records), Format::NQuads).unwrap();
    let all = [text(&react_run()), text(&plan_run()), text(&supervisor_run())].concat();
    let known = (4, "7f163c2b3e68532aae2e8ce2f405f42a4e0eb06831adfd8f90bbaf10836c0c8c");
    assert_eq!(
        (PROJECTION, Hash::of(all).to_string().as_str()),
        known,
        "the same records give other quads: raise `PROJECTION` and note number and hash here"
    );
}
