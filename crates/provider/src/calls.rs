// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The list of all libfabric calls, by the tables of functions in which applications find them. To
//! add a call: its line here, and its function in the module that the line names.
//!
//! A macro that takes a macro: tables declares a trait from the list, entry_points fills the tables
//! with the functions, inherited with functions that refuse. Before each function stands one word:
//!
//! - `each`: there is one for each kind of lock;
//! - `format`: and for each format of entries;
//! - `one`: the same for all;
//! - `always`: the same for all, and in a child process too, since it looks at no object;
//! - `none`: the call is not offered, and answers FI_ENOSYS.

/// Hands the list to the macro `$make`.
macro_rules! every_call {
    ($make:ident) => {
        $make! {
            /// Fabrics (fi_fabric(3)).
            fabric: FiOpsFabric {
                domain: one domain::open,
                passive_ep: none,
                eq_open: one eq::open,
                wait_open: one wait_set::open,
                trywait: one try_wait::try_wait,
                domain2: one domain::open_with_flags,
            }
            /// Domains (fi_domain(3)).
            domain: FiOpsDomain {
                av_open: each av::open,
                cq_open: each cq::open,
                endpoint: each endpoint::open,
                scalable_ep: none,
                cntr_open: each counter::open,
                poll_open: each poll::open,
                stx_ctx: none,
                srx_ctx: each peer::open,
                query_atomic: one atomic_offer::query,
                query_collective: one domain::no_collectives,
                endpoint2: each endpoint::open_with_flags,
            }
            /// Registered regions (fi_mr(3)).
            regions: FiOpsMr {
                reg: each mr::reg,
                regv: each mr::regv,
                regattr: each mr::regattr,
            }
            /// Endpoints (fi_endpoint(3)).
            endpoint: FiOpsEp {
                cancel: each options::cancel,
                getopt: each options::getopt,
                setopt: each options::setopt,
                tx_ctx: none,
                rx_ctx: none,
                rx_size_left: each options::size_left,
                tx_size_left: each options::size_left,
            }
            /// Their names (fi_cm(3)).
            names: FiOpsCm {
                setname: each endpoint::setname,
                getname: each endpoint::getname,
                getpeer: none,
                connect: none,
                listen: none,
                accept: none,
                reject: none,
                shutdown: none,
                join: none,
            }
            /// Messages (fi_msg(3)).
            messages: FiOpsMsg {
                recv: each message::recv,
                recvv: each message::recvv,
                recvmsg: each message::recvmsg,
                send: each message::send,
                sendv: each message::sendv,
                sendmsg: each message::sendmsg,
                inject: each message::inject,
                senddata: each message::senddata,
                injectdata: each message::injectdata,
            }
            /// Tagged messages (fi_tagged(3)).
            tagged: FiOpsTagged {
                recv: each tagged::recv,
                recvv: each tagged::recvv,
                recvmsg: each tagged::recvmsg,
                send: each tagged::send,
                sendv: each tagged::sendv,
                sendmsg: each tagged::sendmsg,
                inject: each tagged::inject,
                senddata: each tagged::senddata,
                injectdata: each tagged::injectdata,
            }
            /// Remote memory (fi_rma(3)).
            remote_memory: FiOpsRma {
                read: each rma::read,
                readv: each rma::readv,
                readmsg: each rma::readmsg,
                write: each rma::write,
                writev: each rma::writev,
                writemsg: each rma::writemsg,
                inject: each rma::inject,
                writedata: each rma::writedata,
                injectdata: each rma::injectdata,
            }
            /// Atomic operations on it (fi_atomic(3)).
            atomics: FiOpsAtomic {
                write: each atomic::write,
                writev: each atomic::writev,
                writemsg: each atomic::writemsg,
                inject: each atomic::inject,
                readwrite: each atomic::fetch,
                readwritev: each atomic::fetchv,
                readwritemsg: each atomic::fetchmsg,
                compwrite: each atomic::compare,
                compwritev: each atomic::comparev,
                compwritemsg: each atomic::comparemsg,
                writevalid: one atomic_offer::write_valid,
                readwritevalid: one atomic_offer::fetch_valid,
                compwritevalid: one atomic_offer::compare_valid,
            }
            /// Completion queues (fi_cq(3)).
            queue[E]: FiOpsCq {
                read: format cq::read,
                readfrom: format cq::read_from,
                readerr: each cq::read_error,
                sread: format cq_wait::read,
                sreadfrom: format cq_wait::read_from,
                signal: each cq_wait::signal,
                strerror: always errno::strerror,
            }
            /// Completion queues that belong to another provider (fi_peer(3)).
            peer_queue: FiOpsCq {
                read: each peer_queue::progress,
                readfrom: none,
                readerr: none,
                sread: none,
                sreadfrom: none,
                signal: none,
                strerror: always errno::strerror,
            }
            /// Counters (fi_cntr(3)).
            counter: FiOpsCntr {
                read: each counter::read,
                readerr: each counter::read_errors,
                add: each counter::add,
                set: each counter::set,
                wait: each counter::wait,
                adderr: each counter::add_errors,
                seterr: each counter::set_errors,
            }
            /// Address vectors (fi_av(3)).
            vector: FiOpsAv {
                insert: each av::insert,
                insertsvc: each av::insert_service,
                insertsym: each av::insert_range,
                remove: each av::remove,
                lookup: each av::lookup,
                straddr: always address::print,
                av_set: none,
            }
            /// Event queues (fi_eq(3)).
            events: FiOpsEq {
                read: one eq::read,
                readerr: one eq::readerr,
                write: one eq::write,
                sread: one eq::sread,
                strerror: always errno::strerror,
            }
            /// Wait sets (fi_poll(3)).
            wait_set: FiOpsWait {
                wait: one wait_set::wait,
            }
            /// Poll sets (fi_poll(3)).
            poll_set: FiOpsPoll {
                poll: each poll::poll,
                poll_add: each poll::add,
                poll_del: each poll::remove,
            }
        }
    };
}

pub(crate) use every_call;
