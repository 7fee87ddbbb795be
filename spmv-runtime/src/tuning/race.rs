//! Which of several products is the fastest, found with few of them: decisions over measurements, and nothing else.
//!
//! Whoever enters multiplies once, which loads its kernels and brings its arrays into the caches; where that takes far longer
//! than the fastest, it is out. Else it is measured, and is out as soon as it is clearly behind the fastest. Those that are not are
//! measured in turn, so that what disturbs the device for a while disturbs all of them, until one is left, the difference is too
//! small to matter, or the budget is spent. A runner's time is the median of its products: a few disturbed ones do not count.

/// Products of a turn.
const TURN: u32 = 3;

/// Products of the first turn, after which most are clearly behind, and how many it has where products are short.
const FIRST_TURN: u32 = 2;
const FIRST_SHORT_TURN: u32 = 3;

/// Milliseconds up to which products are short beside what it takes to start a turn. Turns of such last as long, by more products,
/// up to so many.
const SHORT_MS: f64 = 0.015;
const LONGEST_TURN: u32 = 12;

/// A first product over the time of the fastest with [`LOADING_MS`], beyond which there is no second one: caches are cold, and it
/// waits for the host.
const FAR_BEHIND: f64 = 2.0;

/// Milliseconds that a first product takes longer, for its kernels are loaded: on an H200 products of 2 to 4 µs take 20 to 30 then.
const LOADING_MS: f64 = 0.02;

/// Turns that a runner has when it is decided whether it stays for those that all have in turn.
const QUALIFYING_TURNS: u32 = 2;

/// Runners that stay at most: each keeps a plan in the device's memory.
const MOST_RUNNERS: usize = 6;

/// The part of the budget after which nobody enters any more where several stay, so that they are told apart.
const ENTERING: f64 = 0.7;

/// Products of every runner after which those that are left do not differ by what matters.
const ENOUGH: usize = 36;

/// The time of one over that of another, up to which either may be the faster.
const ALIKE: f64 = 1.02;

/// What is to be done next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Next {
    /// Let the next one enter.
    Enter,
    /// Measure so many products of a runner: a single one is its first.
    Measure { runner: usize, products: u32 },
    /// Nothing more.
    Stop(Stop),
}

/// Why a race is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// All others are clearly behind.
    OneLeft,
    /// Those that are left differ by less than what can be measured, or hardly more.
    Alike,
    /// The budget is spent.
    Budget,
    /// It was known from before; nothing was measured.
    Recalled,
}

/// How long a race may take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Limit {
    /// So many products of the fastest.
    Products(f64),
    /// So much of what [`Race::spend`] is given.
    Amount(f64),
}

/// One that takes part.
#[derive(Clone, Debug)]
struct Runner {
    /// What a product's share of making the plan is.
    share: f64,
    /// What its first product took.
    first: Option<f64>,
    /// What its products took since, each turn's on average, in ascending order.
    times: Vec<f64>,
    /// How many turns those were.
    turns: u32,
    runs: bool,
}

impl Runner {
    /// The part of its products that took less, from 0 to 1.
    fn quantile(&self, part: f64) -> f64 {
        let Some(last) = self.times.len().checked_sub(1) else { return f64::INFINITY };
        let position = part * last as f64;
        let (low, high) = (self.times[position.floor() as usize], self.times[position.ceil() as usize]);
        low + (high - low) * position.fract()
    }

    /// What a product takes. Few turns may all be disturbed, and nothing makes one faster: their least counts.
    fn estimate(&self) -> f64 {
        let product = if self.turns <= QUALIFYING_TURNS { self.quantile(0.0) } else { self.quantile(0.5) };
        product + self.share
    }

    /// Products of its next turn, at least so many.
    fn turn(&self, products: u32) -> u32 {
        let needed = (SHORT_MS / self.quantile(0.5).max(f64::MIN_POSITIVE)).ceil();
        products.max(needed.min(LONGEST_TURN.into()) as u32)
    }

    /// Distance of the quartiles as a part of the median.
    fn spread(&self) -> f64 {
        match self.quantile(0.5) {
            median if median > 0.0 && self.times.len() >= 3 => {
                (self.quantile(0.75) - self.quantile(0.25)) / median
            }
            _ => 0.0,
        }
    }
}

/// The race.
#[derive(Clone, Debug)]
pub(crate) struct Race {
    runners: Vec<Runner>,
    limit: Limit,
    spent: f64,
    /// Whether the same product always takes the same.
    exact: bool,
}

impl Race {
    /// Nobody has entered yet. Where measurements are `exact`, one product of each is enough.
    pub(crate) fn new(limit: Limit, exact: bool) -> Race {
        Race { runners: Vec::new(), limit, spent: 0.0, exact }
    }

    /// Enters one with this share of making the plan in a product, and says its number.
    pub(crate) fn enter(&mut self, share: f64) -> usize {
        self.runners.push(Runner { share, first: None, times: Vec::new(), turns: 0, runs: true });
        self.runners.len() - 1
    }

    /// What is to be done, where `more` may enter.
    pub(crate) fn next(&self, more: bool) -> Next {
        let running = || self.runners.iter().enumerate().filter(|(_, runner)| runner.runs);
        let left = self.left();
        // Of the first to enter, something must be known.
        if left <= 0.0 && self.best().is_some() {
            return Next::Stop(Stop::Budget);
        }
        let qualifying = if self.exact { 1 } else { QUALIFYING_TURNS };
        let entering = running().find(|(_, runner)| runner.turns < qualifying);
        if let Some((runner, known)) = entering {
            let products = match (known.first, &*known.times) {
                (None, _) => 1,
                (_, []) if self.is_short() => FIRST_SHORT_TURN,
                (_, []) => FIRST_TURN,
                _ => known.turn(TURN),
            };
            return Next::Measure { runner, products };
        }
        let one_left = running().count() <= 1;
        if more && (one_left || left > 1.0 - ENTERING) {
            return Next::Enter;
        }
        if one_left {
            return Next::Stop(Stop::OneLeft);
        }
        let fewest = running().min_by_key(|(_, runner)| runner.times.len());
        match fewest {
            Some((runner, known)) if !self.exact && known.times.len() < ENOUGH => {
                Next::Measure { runner, products: known.turn(TURN) }
            }
            _ => Next::Stop(Stop::Alike),
        }
    }

    /// What so many products of a runner took, each. Whoever is clearly behind by now, or far behind with its first, runs no more.
    pub(crate) fn record(&mut self, runner: usize, products: u32, time: f64) {
        let fastest = self.fastest();
        let recorded = &mut self.runners[runner];
        if recorded.first.is_none() {
            recorded.first = Some(time);
            if !self.exact {
                recorded.runs = time <= FAR_BEHIND * (fastest + LOADING_MS);
                return;
            }
        }
        recorded.times.extend(std::iter::repeat_n(time, products as usize));
        recorded.times.sort_by(f64::total_cmp);
        recorded.turns += 1;
        let Some((best, _)) = self.best() else { return };
        // Whoever is the fastest may be so by luck.
        let usual = self.runners[best].quantile(0.5) + self.runners[best].share;
        let margins: Vec<f64> = self.runners.iter().map(|runner| self.margin(runner, best)).collect();
        for (index, (runner, margin)) in self.runners.iter_mut().zip(margins).enumerate() {
            let known = !runner.times.is_empty();
            runner.runs &= index == best || !known || runner.estimate() <= usual * (1.0 + margin);
        }
        while self.runners.iter().filter(|runner| runner.runs).count() > MOST_RUNNERS {
            let slowest = (0..self.runners.len())
                .filter(|index| self.runners[*index].runs && *index != best)
                .max_by(|a, b| self.runners[*a].estimate().total_cmp(&self.runners[*b].estimate()));
            let Some(slowest) = slowest else { break };
            self.runners[slowest].runs = false;
        }
    }

    /// So much was spent: what products took where the limit is one of products.
    pub(crate) fn spend(&mut self, amount: f64) {
        self.spent += amount;
    }

    /// What so many products of a runner spend that took so much together: of its first one, what is not for its kernels to be loaded.
    pub(crate) fn of_products(&self, runner: usize, took: f64) -> f64 {
        let is_first = !self.exact && self.runners[runner].first.is_none();
        if is_first { (took - LOADING_MS).max(0.0) } else { took }
    }

    /// How long it may take.
    pub(crate) fn limit(&self) -> Limit {
        self.limit
    }

    /// The fastest so far and its time, with its share of making the plan.
    pub(crate) fn best(&self) -> Option<(usize, f64)> {
        let known =
            self.runners.iter().enumerate().filter(|(_, runner)| runner.runs && !runner.times.is_empty());
        known.map(|(index, runner)| (index, runner.estimate())).min_by(|a, b| a.1.total_cmp(&b.1))
    }

    /// What a product of the fastest takes.
    fn fastest(&self) -> f64 {
        self.best().map_or(f64::INFINITY, |(best, _)| self.runners[best].quantile(0.5))
    }

    /// Whether products are short.
    fn is_short(&self) -> bool {
        !self.exact && self.fastest() < SHORT_MS
    }

    /// What a product of a runner takes, with its share of making the plan, where it was measured.
    pub(crate) fn estimate(&self, runner: usize) -> Option<f64> {
        let runner = &self.runners[runner];
        (!runner.times.is_empty()).then(|| runner.estimate())
    }

    /// Takes a runner out of the race.
    pub(crate) fn withdraw(&mut self, runner: usize) {
        self.runners[runner].runs = false;
    }

    /// Whether a runner is still in the race.
    pub(crate) fn runs(&self, runner: usize) -> bool {
        self.runners[runner].runs
    }

    /// A runner's products: the median, the distance of the quartiles as a part of it, and how many; of whoever had one, that one.
    pub(crate) fn measured(&self, runner: usize) -> (f64, f64, usize) {
        let runner = &self.runners[runner];
        match runner.first {
            Some(first) if runner.times.is_empty() => (first, 0.0, 1),
            _ => (runner.quantile(0.5), runner.spread(), runner.times.len()),
        }
    }

    /// The part of the budget that is left.
    pub(crate) fn left(&self) -> f64 {
        let limit = match self.limit {
            Limit::Amount(amount) => amount,
            Limit::Products(_) if self.exact => f64::INFINITY,
            Limit::Products(products) => products * self.fastest(),
        };
        if limit == f64::INFINITY { 1.0 } else { 1.0 - self.spent / limit.max(f64::MIN_POSITIVE) }
    }

    /// Whether the same product always takes the same, so that whoever may enter does, and multiplies once.
    pub(crate) fn is_exact(&self) -> bool {
        self.exact
    }

    /// What is measured errs by as much: the time of one over that of the fastest, up to which it may be the faster.
    pub(crate) fn alike(&self) -> f64 {
        if self.exact { 1.0 } else { ALIKE }
    }

    /// How much slower than the best a runner must look to be clearly behind: less the more is known of both, and more where
    /// products are disturbed.
    fn margin(&self, runner: &Runner, best: usize) -> f64 {
        if self.exact {
            return 0.0;
        }
        let best = &self.runners[best];
        let known = runner.times.len().min(best.times.len()).max(1) as f64;
        let spread = runner.spread().max(best.spread());
        0.003 + 0.08 / known + spread / known.sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Products whose times are known, with noise that is never negative, and now and then a product that takes far longer.
    struct Device {
        times: Vec<f64>,
        noise: f64,
        seed: u64,
    }

    impl Device {
        fn new(times: &[f64], noise: f64) -> Device {
            Device { times: times.to_vec(), noise, seed: 7 }
        }

        fn random(&mut self) -> f64 {
            self.seed =
                self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.seed >> 33) as f64 / (1u64 << 31) as f64
        }

        fn product(&mut self, runner: usize) -> f64 {
            let disturbed = if self.random() < 0.05 { 2.0 } else { 1.0 };
            self.times[runner] * (1.0 + self.noise * self.random()) * disturbed
        }

        /// Lets all of them race: the winner, why it is over, and how many products each had.
        fn race(self, limit: Limit) -> (usize, Stop, Vec<usize>) {
            let (best, why, products, _) = self.spending_race(limit);
            (best, why, products)
        }

        /// The same, and what was spent. As on a device, a product that counts runs before those that are timed where another
        /// ran since.
        fn spending_race(mut self, limit: Limit) -> (usize, Stop, Vec<usize>, f64) {
            let mut race = Race::new(limit, self.noise == 0.0);
            let (mut entered, mut last_ran) = (0, None);
            loop {
                match race.next(entered < self.times.len()) {
                    Next::Enter => entered = race.enter(0.0) + 1,
                    Next::Measure { runner, products } => {
                        let took = match self.noise {
                            0.0 => self.times[runner] * f64::from(products),
                            _ => (0..products).map(|_| self.product(runner)).sum(),
                        };
                        let time = took / f64::from(products);
                        let is_again = race.estimate(runner).is_some();
                        let is_untimed = last_ran.replace(runner) != Some(runner) && is_again;
                        race.spend(race.of_products(runner, took + if is_untimed { time } else { 0.0 }));
                        race.record(runner, products, time);
                    }
                    Next::Stop(why) => {
                        let products = (0..entered).map(|runner| race.measured(runner).2).collect();
                        return (race.best().unwrap().0, why, products, race.spent);
                    }
                }
            }
        }
    }

    #[test]
    fn what_is_clearly_behind_has_one_turn() {
        let (best, why, products) = Device::new(&[1.3, 1.0, 1.6, 1.7], 0.02).race(Limit::Products(200.0));
        assert_eq!((best, why), (1, Stop::OneLeft));
        assert_eq!(products[2..], [2, 2]);
    }

    #[test]
    fn what_is_far_behind_multiplies_once() {
        let (best, why, products) = Device::new(&[1.0, 500.0, 0.9, 30.0], 0.02).race(Limit::Products(2000.0));
        assert_eq!((best, why), (2, Stop::OneLeft));
        assert_eq!([products[1], products[3]], [1, 1]);
    }

    #[test]
    fn close_ones_are_told_apart_within_the_budget() {
        let times = [1.1, 1.05, 1.04, 1.0, 1.03, 1.2, 1.5, 1.06, 1.3, 1.02, 2.0, 1.09, 1.4, 1.07, 1.6, 1.8];
        let mut found = 0;
        for seed in 0..200 {
            let device = Device { seed, ..Device::new(&times, 0.03) };
            let (best, _, _, spent) = device.spending_race(Limit::Products(200.0));
            found += usize::from(times[best] <= 1.02);
            assert!(spent < 200.0 * 1.2, "{spent} of 200");
        }
        assert!(found >= 195, "{found} of 200");
    }

    #[test]
    fn those_that_do_not_differ_do_not_use_up_a_large_budget() {
        let (_, why, products) = Device::new(&[1.0, 1.001, 1.0005], 0.02).race(Limit::Products(1e6));
        assert_eq!(why, Stop::Alike);
        assert!(products.iter().all(|products| *products <= ENOUGH + 3), "{products:?}");
    }

    #[test]
    fn a_small_budget_still_measures_one() {
        let (best, why, products) = Device::new(&[1.0, 0.5], 0.02).race(Limit::Amount(0.1));
        assert_eq!((best, why, products.len()), (0, Stop::Budget, 1));
    }

    #[test]
    fn short_products_have_long_turns() {
        for (time, first, later) in [(1.0, 2, 3), (0.012, 3, 3), (0.004, 3, 4), (0.001, 3, 12)] {
            let mut race = Race::new(Limit::Products(200.0), false);
            let runner = race.enter(0.0);
            for (products, why) in
                [(1, "kernels are loaded"), (2, "nothing is known"), (later, "it may be short")]
            {
                assert_eq!(race.next(false), Next::Measure { runner, products }, "{why}");
                race.record(runner, products, time);
            }
            let other = race.enter(0.0);
            for products in [1, first, later] {
                assert_eq!(race.next(false), Next::Measure { runner: other, products });
                race.record(other, products, time);
            }
            assert_eq!(race.next(false), Next::Measure { runner, products: later });
        }
    }

    #[test]
    fn short_products_that_are_behind_have_one_turn() {
        let (best, why, products) =
            Device::new(&[0.004, 0.005, 0.0045, 0.0047], 0.001).race(Limit::Products(200.0));
        assert_eq!((best, why), (0, Stop::OneLeft));
        assert_eq!(products[1..], [3, 3, 3]);
    }

    #[test]
    fn a_first_product_is_no_measurement() {
        let mut race = Race::new(Limit::Products(200.0), false);
        let (fast, slow, far) = (race.enter(0.0), race.enter(0.0), race.enter(0.0));
        assert!((race.of_products(fast, 0.03) - 0.01).abs() < 1e-9 && race.of_products(fast, 0.015) == 0.0);
        for (runner, first) in [(fast, 3.0), (slow, 1.0)] {
            race.record(runner, 1, first);
            race.record(runner, 2, if runner == fast { 1.0 } else { 1.04 });
        }
        race.record(far, 1, 3.0);
        assert_eq!((race.best().unwrap().0, race.runs(slow), race.runs(far)), (fast, true, false));
        assert_eq!(race.of_products(fast, 0.03), 0.03);
        assert_eq!((race.measured(slow).2, race.measured(far)), (2, (3.0, 0.0, 1)));
    }

    #[test]
    fn loading_puts_no_short_product_out() {
        let mut race = Race::new(Limit::Products(200.0), false);
        let (known, loads, far) = (race.enter(0.0), race.enter(0.0), race.enter(0.0));
        for (products, time) in [(1, 0.022), (3, 0.003)] {
            race.record(known, products, time);
        }
        race.record(loads, 1, 0.031);
        race.record(far, 1, 0.05);
        assert_eq!((race.runs(loads), race.runs(far)), (true, false));
        race.record(loads, 3, 0.0025);
        assert_eq!(race.best().unwrap().0, loads);
    }

    #[test]
    fn a_quick_turn_of_one_puts_nobody_out() {
        let mut race = Race::new(Limit::Products(200.0), false);
        let (lucky, other) = (race.enter(0.0), race.enter(0.0));
        for (runner, times) in [(lucky, [0.9, 1.0]), (other, [1.0, 1.0])] {
            race.record(runner, 1, 1.0);
            race.record(runner, 2, times[0]);
            race.record(runner, 3, times[1]);
        }
        assert_eq!((race.best().unwrap().0, race.runs(other)), (lucky, true));
    }

    #[test]
    fn exact_measurements_are_taken_once() {
        let (best, why, products) = Device::new(&[3.0, 1.0, 2.0, 1.0], 0.0).race(Limit::Products(200.0));
        assert_eq!((best, why, products), (1, Stop::Alike, vec![1, 1, 1, 1]));
    }

    #[test]
    fn few_stay() {
        let mut race = Race::new(Limit::Products(1e6), false);
        for runner in 0..20 {
            race.enter(0.0);
            (0..2).for_each(|_| race.record(runner, 6, 1.0 + 1e-4 * runner as f64));
        }
        assert_eq!((0..20).filter(|runner| race.runs(*runner)).count(), MOST_RUNNERS);
        assert!(race.runs(0));
    }

    #[test]
    fn who_is_withdrawn_is_fastest_no_more() {
        let mut race = Race::new(Limit::Products(200.0), false);
        let (fast, slow) = (race.enter(0.0), race.enter(0.0));
        for (runner, time) in [(fast, 1.0), (slow, 1.01)] {
            (0..2).for_each(|_| race.record(runner, 6, time));
        }
        assert_eq!(race.best().unwrap().0, fast);
        race.withdraw(fast);
        assert_eq!(race.best().unwrap().0, slow);
        race.withdraw(slow);
        assert_eq!(race.best(), None);
    }

    #[test]
    fn the_share_of_making_a_plan_counts() {
        let mut race = Race::new(Limit::Products(200.0), false);
        let (dear, cheap) = (race.enter(0.5), race.enter(0.0));
        (0..2).for_each(|_| race.record(dear, 6, 1.0));
        (0..2).for_each(|_| race.record(cheap, 6, 1.2));
        assert_eq!(race.best().unwrap().0, cheap);
        assert!(!race.runs(dear));
    }
}
