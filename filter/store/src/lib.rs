// SPDX-License-Identifier: Apache-2.0
//! Envoy's HTTP cache filter as a store: the requests to it, the data that it keeps beside a response, and the time
//! when it has a response.
//!
//! Flights use it through [`Store`](sluice_core::coalescing::Store). The tests implement this trait with a store in
//! memory as well. Each part exists because of a behavior of Envoy's cache. If the named test shows that the behavior
//! has changed, the part can be removed.
//!
//! | part | Envoy's cache | test |
//! |---|---|---|
//! | [`confirmations`] | makes an entry readable some time after its response, and does not notify filters | `a_head_right_after_a_get_is_no_origin_request_of_its_own` |
//! | [`confirmations`] | has no entry while it rewrites a freshened one | `control_bare_envoy_does_not_have_an_object_while_it_writes_it_anew` |
//! | [`store_path`] | names files by a hash without a key | `names_depend_on_a_secret_that_a_restart_keeps` |
//! | [`stored::entry`], [`served`] | does not compare the key in a file | `a_file_of_another_key_hides_nothing_for_long` |
//! | [`stored::revalidation`], [`stored::validator`] | passes the error of a failing origin on | `control_bare_envoy_passes_the_error_on` |
//! | [`stored::store_edits`], [`stored::stored_fields`] | stores some statuses only, and counts freshness from `Date` | `followers_share_a_status_that_envoys_store_does_not_keep` |
//! | [`stored::hidden_fields`] | loses the fields behind a value that is not text | `control_the_store_loses_the_fields_behind_a_value_that_is_no_text` |
//! | [`stored::body_lengths`] | cuts a range out of an object without a length | `control_bare_envoy_cuts_ranges_out_of_what_it_has_stored_without_a_length` |
//! | [`link`] | also sends requests between EDGE and ORIGIN | `a_private_object_is_served_and_stored` |

mod around;
mod confirmations;
mod link;
mod lookup;
mod room;
mod served;
mod store_path;
mod stored;
mod vouching;

pub use around::{mark_around, unmark_around};
pub use confirmations::Confirmations;
pub use link::{
    AROUND_HEADER, BYPASS_SENTINEL, LINK_HEADER, Link, PATH_HEADER, Received, Secrets, Vouched,
};
pub use lookup::{
    LOOKUP_EXPIRED, LOOKUP_NO_ROOM, allows_authenticated, has_come_since, has_succeeded, has_told,
    looked_up,
};
pub use room::Room;
pub use served::{Arrival, NO_ROOM, Served};
pub use store_path::{store_path, without_hash};
pub use stored::body_lengths::BodyLengths;
pub use stored::entry::{ENTRY_HEADER, Entry, FillId};
pub use stored::hidden_fields::hide_fields;
pub use stored::revalidation::Revalidation;
pub use stored::store_edits::{OriginResponse, WRITTEN_FIELDS, restored};
pub use stored::stored_fields::{STORED_VARY, StoredFields};
pub use vouching::{Sender, Vouching};
