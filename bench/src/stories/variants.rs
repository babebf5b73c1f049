//! To be done.
use crate::report::Report;
pub async fn run(_quick: bool) -> Option<Report> {
    None
}
