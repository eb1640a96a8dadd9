//! The seats of a server, each taken by one request that is being handled: how many a level has and may borrow, and the queues
//! in front of them. Levels borrow and return seats at once, where kube-apiserver adjusts their limits every ten seconds.
// apiserver/pkg/util/flowcontrol/fairqueuing/queueset

use crate::flow_control::configuration::{Configuration, Limited};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::oneshot;

/// Whether a request may be handled.
pub(crate) enum Admission {
    /// No limit applies to it.
    Exempt,
    /// It may, and takes a seat.
    Granted(Seat),
    /// It may as soon as a seat is free.
    Queued(oneshot::Receiver<Seat>),
    /// It may not: no seat is free, and the queue is full or the level has none.
    Rejected,
}

/// A seat that is taken; dropping it returns it.
pub(crate) struct Seat {
    seats: Arc<Mutex<Seats>>,
    level: Option<String>,
}

impl Drop for Seat {
    fn drop(&mut self) {
        if let Some(level) = self.level.take() {
            let mut seats = self.seats.lock().unwrap_or_else(PoisonError::into_inner);
            seats.release(&level);
            seats.dispatch(&self.seats);
        }
    }
}

/// The seats of all levels.
pub(crate) struct Seats {
    /// How many requests the server handles at a time; 0 sets no limit.
    total: usize,
    /// The configuration that the limits are derived from.
    generation: Option<u64>,
    levels: BTreeMap<String, LevelSeats>,
}

#[derive(Default)]
struct LevelSeats {
    limits: Limited,
    /// The seats that are the level's own.
    nominal: usize,
    /// The seats that it never lends.
    reserved: usize,
    /// The seats that it may take at most.
    most: usize,
    taken: usize,
    /// The queues in which requests wait; each has at least one.
    queues: HashMap<u64, VecDeque<oneshot::Sender<Seat>>>,
    /// The same queues, in the order in which they are served.
    turns: VecDeque<u64>,
}

impl Seats {
    /// The seats of a server that handles `total` requests at a time.
    pub fn new(total: usize) -> Seats {
        Seats { total, generation: None, levels: BTreeMap::new() }
    }

    /// Takes over the levels, unless they are known. Requests that wait in a level that is gone are rejected.
    pub fn configure(&mut self, configuration: &Configuration) {
        if self.generation == Some(configuration.generation) {
            return;
        }
        self.generation = Some(configuration.generation);
        let limited = || configuration.levels().filter_map(|level| Some((&level.name, level.limits.as_ref()?)));
        let shares: usize = limited().map(|(_, limits)| limits.nominal_concurrency_shares as usize).sum();
        let mut old = std::mem::take(&mut self.levels);
        for (name, limits) in limited() {
            let mut level = old.remove(name).unwrap_or_default();
            level.set_limits(limits, self.total, shares.max(1));
            self.levels.insert(name.clone(), level);
        }
    }

    /// Asks for a seat of a level, for a request of a flow.
    pub fn request(&mut self, own: &Arc<Mutex<Seats>>, level: &str, flow: u64) -> Admission {
        if self.total == 0 {
            return Admission::Exempt;
        }
        let has_room = self.has_room(level);
        let Some(state) = self.levels.get_mut(level) else {
            return Admission::Rejected;
        };
        if has_room && state.turns.is_empty() {
            state.taken += 1;
            return Admission::Granted(Seat { seats: own.clone(), level: Some(level.to_owned()) });
        }
        let admission = match state.enqueue(flow) {
            Some(granted) => Admission::Queued(granted),
            None => Admission::Rejected,
        };
        self.dispatch(own);
        admission
    }

    /// Whether a level may take one more seat: one of its own that is not lent, or one that no level needs.
    fn has_room(&self, level: &str) -> bool {
        let Some(state) = self.levels.get(level) else {
            return false;
        };
        let claimed: usize = self.levels.values().map(|level| level.taken.max(level.reserved)).sum();
        let seats: usize = self.levels.values().map(|level| level.nominal).sum();
        state.taken < state.reserved || (state.taken < state.most && claimed < seats)
    }

    fn release(&mut self, level: &str) {
        if let Some(state) = self.levels.get_mut(level) {
            state.taken = state.taken.saturating_sub(1);
        }
    }

    /// Gives free seats to requests that wait: first of the level that has the least of its own, so that borrowed seats return.
    fn dispatch(&mut self, own: &Arc<Mutex<Seats>>) {
        loop {
            let waiting = self.levels.iter().filter(|(name, level)| !level.turns.is_empty() && self.has_room(name));
            let share = |level: &LevelSeats| level.taken as f64 / level.nominal.max(1) as f64;
            let Some((name, _)) = waiting.min_by(|(_, a), (_, b)| share(a).total_cmp(&share(b))) else {
                return;
            };
            let name = name.clone();
            if let Some(level) = self.levels.get_mut(&name) {
                level.serve(&name, own);
            }
        }
    }
}

impl LevelSeats {
    // apiserver/pkg/util/flowcontrol/apf_controller.go, finishQueueSetReconfigsLocked
    fn set_limits(&mut self, limits: &Limited, total: usize, shares: usize) {
        self.nominal = (total * limits.nominal_concurrency_shares as usize).div_ceil(shares);
        let percent = |percent: u32| (self.nominal * percent as usize + 50) / 100;
        self.reserved = self.nominal.saturating_sub(percent(limits.lendable_percent));
        self.most = match limits.borrowing_limit_percent {
            Some(borrowed) => (self.nominal + percent(borrowed)).min(total),
            None => total,
        };
        self.limits = limits.clone();
    }

    /// Adds a request to the shortest of its flow's queues; none if that is full, or there are no queues.
    fn enqueue(&mut self, flow: u64) -> Option<oneshot::Receiver<Seat>> {
        let queuing = self.limits.queuing()?;
        let length = |queue: &u64| self.queues.get(queue).map_or(0, VecDeque::len);
        let queue = deal(flow, queuing.queues, queuing.hand_size).into_iter().min_by_key(length)?;
        let most = queuing.queue_length_limit;
        let requests = self.queues.entry(queue).or_default();
        requests.retain(|request| !request.is_closed());
        if requests.len() >= most {
            return None;
        }
        let (sender, granted) = oneshot::channel();
        requests.push_back(sender);
        if !self.turns.contains(&queue) {
            self.turns.push_back(queue);
        }
        Some(granted)
    }

    /// Gives a seat to the first request of the queue whose turn it is, if one still waits there.
    fn serve(&mut self, name: &str, seats: &Arc<Mutex<Seats>>) {
        let Some(queue) = self.turns.pop_front() else {
            return;
        };
        let Some(requests) = self.queues.get_mut(&queue) else {
            return;
        };
        while let Some(request) = requests.pop_front() {
            let seat = Seat { seats: seats.clone(), level: Some(name.to_owned()) };
            match request.send(seat) {
                Ok(()) => {
                    self.taken += 1;
                    break;
                }
                // The request was cancelled. Its seat was never taken, and must not be returned while this lock is held.
                Err(mut seat) => seat.level = None,
            }
        }
        match requests.is_empty() {
            true => drop(self.queues.remove(&queue)),
            false => self.turns.push_back(queue),
        }
    }
}

/// The queues of a flow: `size` different ones out of `count`, chosen by its hash.
// apiserver/pkg/util/shufflesharding, Deal
fn deal(mut hash: u64, count: u64, size: u64) -> Vec<u64> {
    let mut remainders: Vec<u64> = Vec::new();
    let mut hand = Vec::new();
    for dealt in 0..size.min(count) {
        let left = count - dealt;
        let mut card = hash % left;
        hash /= left;
        remainders.push(card);
        for earlier in remainders[..dealt as usize].iter().rev() {
            card += u64::from(card >= *earlier);
        }
        hand.push(card);
    }
    hand
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store_index::Index;
    use serde_json::{Value, json};

    const TOTAL: usize = 100;

    /// Levels of equal shares: `catch-all` has five, and each of these ninety-five in common.
    fn seats(levels: &[(&str, Value)]) -> Arc<Mutex<Seats>> {
        let mut configuration = Configuration::default();
        for (name, limited) in levels {
            let key = format!("flowcontrol.apiserver.k8s.io/prioritylevelconfigurations/{name}");
            let object = json!({"spec": {"type": "Limited", "limited": limited}}).to_string();
            configuration.apply(key.as_bytes(), Some(object.as_bytes()));
        }
        let mut seats = Seats::new(TOTAL);
        seats.configure(&configuration);
        Arc::new(Mutex::new(seats))
    }

    fn ask(seats: &Arc<Mutex<Seats>>, level: &str, flow: u64) -> Admission {
        seats.lock().unwrap().request(seats, level, flow)
    }

    fn granted(seats: &Arc<Mutex<Seats>>, level: &str) -> Vec<Seat> {
        std::iter::from_fn(|| match ask(seats, level, 0) {
            Admission::Granted(seat) => Some(seat),
            _ => None,
        })
        .collect()
    }

    fn queued(seats: &Arc<Mutex<Seats>>, level: &str, flow: u64) -> oneshot::Receiver<Seat> {
        match ask(seats, level, flow) {
            Admission::Queued(granted) => granted,
            _ => panic!("the request is not queued"),
        }
    }

    fn queue(length: usize) -> Value {
        json!({"type": "Queue", "queuing": {"queues": 16, "handSize": 1, "queueLengthLimit": length}})
    }

    #[test]
    fn a_level_that_lends_nothing_keeps_its_seats() {
        let reject = json!({"type": "Reject"});
        let own = json!({"nominalConcurrencyShares": 45, "lendablePercent": 0, "borrowingLimitPercent": 0, "limitResponse": reject});
        let seats = seats(&[
            ("a", own.clone()),
            ("b", json!({"nominalConcurrencyShares": 50, "limitResponse": reject})),
        ]);

        let b = granted(&seats, "b");
        assert_eq!(b.len(), 50, "nothing can be borrowed");
        assert_eq!(granted(&seats, "a").len(), 45);
        drop(b);
        let a = granted(&seats, "a");
        assert_eq!(a.len(), 45, "a borrowing limit of 0 % allows no more");
    }

    #[test]
    fn lent_seats_return_to_their_level_first() {
        let lends = json!({"nominalConcurrencyShares": 45, "lendablePercent": 100, "limitResponse": queue(50)});
        let borrows = json!({"nominalConcurrencyShares": 50, "limitResponse": queue(50)});
        let seats = seats(&[("lender", lends), ("borrower", borrows)]);

        let mut borrowed = granted(&seats, "borrower");
        // The loop above has queued one request.
        assert_eq!(borrowed.len(), 95);
        let mut own = queued(&seats, "lender", 0);
        let mut more = queued(&seats, "borrower", 1);
        assert!(own.try_recv().is_err(), "every seat is taken");
        drop(borrowed.pop());
        let _seat = own.try_recv().expect("the lender has less of its own than the borrower");
        assert!(more.try_recv().is_err());
    }

    #[test]
    fn flows_of_a_level_take_turns() {
        let limited = json!({"nominalConcurrencyShares": 95, "borrowingLimitPercent": 0, "limitResponse": queue(10)});
        let seats = seats(&[("level", limited)]);
        let mut taken = granted(&seats, "level");
        // Queues are chosen by the flow modulo 16; the loop above has left a request of flow 0, whose receiver is gone.
        let mut many: Vec<_> = (0..9).map(|_| queued(&seats, "level", 0)).collect();
        let mut one = queued(&seats, "level", 1);

        drop(taken.pop());
        let _first = many[0].try_recv().expect("the first flow is served first");
        drop(taken.pop());
        let _second = one.try_recv().expect("the second flow is served after one request of the first");
        assert!(many[1].try_recv().is_err());
    }

    #[test]
    fn full_queues_reject_and_cancelled_requests_leave() {
        let limited = json!({"nominalConcurrencyShares": 95, "borrowingLimitPercent": 0, "limitResponse": queue(2)});
        let seats = seats(&[("level", limited)]);
        let taken = granted(&seats, "level");
        let first = queued(&seats, "level", 0);
        let second = queued(&seats, "level", 0);
        assert!(matches!(ask(&seats, "level", 0), Admission::Rejected));
        drop(first);
        let third = queued(&seats, "level", 0);
        drop((second, third, taken));

        assert_eq!(granted(&seats, "level").len(), 95, "every seat was returned");
    }

    #[test]
    fn a_granted_seat_that_is_not_fetched_returns() {
        let limited = json!({"nominalConcurrencyShares": 95, "borrowingLimitPercent": 0, "limitResponse": queue(2)});
        let seats = seats(&[("level", limited)]);
        let mut taken = granted(&seats, "level");
        let waiting = queued(&seats, "level", 3);
        drop(taken.pop());
        drop(waiting);

        assert!(matches!(ask(&seats, "level", 0), Admission::Granted(_)));
    }

    #[test]
    fn a_level_that_is_gone_rejects() {
        let limited = json!({"nominalConcurrencyShares": 95, "borrowingLimitPercent": 0, "limitResponse": queue(2)});
        let seats = seats(&[("level", limited)]);
        let taken = granted(&seats, "level");
        let mut waiting = queued(&seats, "level", 3);
        let mut configuration = Configuration::default();
        configuration.generation = 99;
        seats.lock().unwrap().configure(&configuration);

        assert!(matches!(waiting.try_recv(), Err(oneshot::error::TryRecvError::Closed)));
        assert!(matches!(ask(&seats, "level", 0), Admission::Rejected));
        drop(taken);
    }

    #[test]
    fn hands_have_different_queues() {
        for hash in [0, 1, 7, 12345, u64::MAX] {
            let mut hand = deal(hash, 8, 8);
            hand.sort_unstable();
            assert_eq!(hand, [0, 1, 2, 3, 4, 5, 6, 7]);
        }
    }
}
