// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The laws of messages and of one-sided operations, written once and tested on every route under
//! several conditions.
//!
//! A [`pair::Fabric`] opens two endpoints that reach each other; each law is a function over any
//! fabric, named in the list below, and becomes one test for each fabric. Sources: fi_msg(3),
//! fi_tagged(3), fi_rma(3), fi_atomic(3), fi_cq(3), fi_cntr(3), fi_av(3), and MPI-4.1 section 3.5
//! for order.

mod access;
mod address;
mod addresses;
mod atomic;
mod backlog;
mod cancel;
mod completion;
mod datagrams;
mod direct;
mod exchange;
mod fabrics;
mod join;
mod loss;
mod matching;
mod multi_receive;
mod pair;
mod peek;
mod stress;

/// Makes a test of every law, on one fabric.
macro_rules! conformance {
    ($fabric:ident) => {
        crate::conformance!(fabrics $fabric);
    };
    ($home:ident $fabric:ident) => {
        #[allow(non_snake_case)]
        mod $fabric {
            use crate::$home::$fabric;
            crate::conformance!($fabric: access [
                every_length_is_written_and_read_back_and_nothing_beside_it,
                scattered_memory_is_touched_in_order_on_both_sides,
                what_may_not_be_touched_is_refused_and_stays_as_it_is,
                nothing_moves_to_or_from_a_region_after_it_was_closed,
                calls_that_contradict_themselves_are_refused_at_once,
                data_of_a_write_is_an_entry_at_its_target,
                an_injected_write_needs_its_buffer_no_longer_and_has_no_entry,
                what_travels_with_its_request_keeps_the_order_of_messages,
                a_fenced_operation_waits_for_all_before_it,
                writes_from_both_sides_to_parts_of_one_region_lose_nothing,
                operations_on_the_dead_end,
            ]);
            crate::conformance!($fabric: address [
                a_message_before_its_sender_is_known_matches_a_directed_receive_later,
                an_address_known_twice_is_one_remote_reported_by_its_first_name,
                a_removed_address_is_sent_to_no_more_but_heard_still,
                objects_in_use_cannot_be_closed,
            ]);
            crate::conformance!($fabric: atomic [
                elements_are_changed_fetched_and_compared,
                long_rows_and_several_ranges_are_changed_element_by_element,
                additions_from_both_sides_at_once_are_all_counted,
                additions_of_eight_initiators_are_all_counted,
                a_compare_and_swap_elects_one,
                what_has_no_meaning_is_refused_at_once_and_bad_keys_in_the_end,
            ]);
            crate::conformance!($fabric: backlog [
                bidirectional_sends_are_taken_though_nobody_makes_progress,
                beyond_the_depth_senders_are_told_to_come_again_and_all_that_was_taken_arrives,
                a_write_among_sends_that_wait_keeps_its_place,
                sends_that_wait_for_the_dead_end_in_errors,
                a_send_that_waits_can_be_canceled_and_only_it_is_missing,
            ]);
            crate::conformance!($fabric: cancel [
                a_canceled_receive_ends_in_an_error_and_matches_nothing,
                what_is_not_posted_cannot_be_canceled,
            ]);
            crate::conformance!($fabric: completion [
                selective_queues_report_only_what_asks_for_it,
                every_level_completes_and_delivery_waits_for_the_receive,
                counters_count_messages_whether_or_not_they_have_entries,
                errors_are_counted_apart,
            ]);
            crate::conformance!($fabric: exchange [
                every_length_arrives_whole_in_a_posted_receive,
                every_length_arrives_whole_when_it_was_unexpected,
                scattered_buffers_arrive_in_order,
                messages_from_one_sender_arrive_in_order_whatever_their_length,
                a_message_to_oneself_arrives,
                an_injected_message_needs_its_buffer_no_longer_and_has_no_entry,
                long_injects_need_their_buffers_no_longer_and_keep_their_order,
                a_long_inject_that_asks_for_delivery_ends_with_it,
                a_short_receive_gets_what_fits_and_an_error,
                bidirectional_traffic_arrives_whole,
            ]);
            crate::conformance!($fabric: loss [
                a_directed_receive_ends_when_its_source_dies,
                what_was_reported_as_sent_arrives_though_its_sender_closes_at_once,
                what_was_received_is_complete_though_its_receiver_closes_at_once,
                a_receive_from_the_dead_ends_too,
                messages_of_the_dead_are_received_but_their_offers_are_void,
                a_send_to_the_dead_ends,
            ]);
            crate::conformance!($fabric: matching [
                plain_and_tagged_messages_never_meet,
                the_earliest_receive_that_matches_takes_the_message,
                a_receive_takes_the_earliest_message_that_matches,
                a_directed_receive_takes_from_its_source_alone,
            ]);
            crate::conformance!($fabric: multi_receive [
                a_multi_receive_packs_messages_and_is_released_once,
                a_multi_receive_takes_what_was_unexpected_first,
                the_release_is_reported_even_if_the_queue_is_selective,
                a_message_beyond_the_room_left_is_cut,
                a_canceled_multi_receive_is_released,
            ]);
            crate::conformance!($fabric: peek [
                a_peek_tells_of_a_message_and_leaves_it,
                a_peek_that_finds_nothing_ends_in_an_error_entry,
                a_claimed_message_is_found_by_its_context_alone,
                a_discarded_message_is_gone_and_its_sender_is_done,
                flags_that_contradict_each_other_are_refused,
            ]);
            crate::conformance!($fabric: stress [
                random_traffic_keeps_every_law_of_matching,
            ]);
        }
    };
    ($fabric:ident: $file:ident [$($law:ident,)*]) => {
        $(#[test]
        fn $law() {
            crate::$file::$law::<$fabric>();
        })*
    };
}
pub(crate) use conformance;

conformance!(Eager);
conformance!(Offered);
conformance!(Trickling);
conformance!(LittleRoom);
conformance!(SharedMemory);
conformance!(SharedMemoryFetching);
conformance!(SharedMemoryConfined);
conformance!(SharedMemoryDirect);
conformance!(JoinedApart);
conformance!(JoinedCrossed);
conformance!(datagrams Loopback);
conformance!(datagrams Calm);
conformance!(datagrams Lossy);
conformance!(datagrams Full);
