//! Which of several products is the fastest, found with few of them: decisions over measurements, and nothing else.
//!
//! There are rounds, each with a longer turn of products than the one before: what begins and ends a turn takes some kernels longer
//! than others, and on an H200 a product of one long turn is known better than the median of many short ones, whatever their number.
//! Therefore runners are compared by the longest turns that both had, and whoever is clearly behind there is out. Whoever enters has
//! the first turn, and only who looks faster than the fastest longer ones before all have entered; then the others have them, the
//! fastest first, until one is left, none had fewer than the last round asks for, or the budget is spent.

/// The turns of a runner.
struct Round {
    /// Products of a turn, behind one that does not count.
    products: u32,
    /// How much longer than the fastest a product may take, as a part of its time, for the runner to stay.
    behind: f64,
}

/// The rounds. The last one has several turns, where the budget lasts.
const ROUNDS: [Round; 3] = [
    Round { products: 1, behind: 0.05 },
    Round { products: 4, behind: 0.015 },
    Round { products: 12, behind: 0.008 },
];

/// The last round.
const LAST: usize = ROUNDS.len() - 1;

/// Turns of the last round after which those that are left do not differ by what matters. A runner's time there is their median.
const ENOUGH: usize = 3;

/// A product's time over the one in the round before, beyond which the turn was disturbed: it is repeated, and the lesser time
/// counts, for nothing makes a product faster.
const DISTURBED: f64 = 1.02;

/// Runners that stay at most: each keeps a plan in the device's memory.
const MOST_RUNNERS: usize = 8;

/// The part of the budget after which nobody enters any more where several stay, so that they are told apart.
const ENTERING: f64 = 0.7;

/// The time of one over that of another, up to which either may be the faster.
const ALIKE: f64 = 1.02;

/// What is to be done next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Next {
    /// Let the next one enter.
    Enter,
    /// Measure so many products of a runner, behind one that does not count.
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
    /// What a product took in the turn of each round, then in those that the last one has besides.
    turns: Vec<f64>,
    /// What a product took in a turn that was disturbed and is to be repeated.
    disturbed: Option<f64>,
    /// How many products were measured.
    products: usize,
    runs: bool,
}

impl Runner {
    /// The last round that it had a turn of.
    fn round(&self) -> Option<usize> {
        self.turns.len().checked_sub(1).map(|last| last.min(LAST))
    }

    /// What a product took in a round that it had a turn of.
    fn product(&self, round: usize) -> f64 {
        if round < LAST { self.turns[round] } else { median(&self.turns[LAST..]) }
    }

    /// The same with its share of making the plan.
    fn time(&self, round: usize) -> f64 {
        self.product(round) + self.share
    }

    /// Products of its next turn.
    fn next_products(&self) -> u32 {
        ROUNDS[self.turns.len().min(LAST)].products
    }
}

/// The one in the middle, or the mean of the two that are.
fn median(times: &[f64]) -> f64 {
    let mut times = times.to_vec();
    times.sort_by(f64::total_cmp);
    let middle = times.len() / 2;
    if times.len() % 2 == 1 { times[middle] } else { (times[middle - 1] + times[middle]) / 2.0 }
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
        self.runners.push(Runner { share, turns: Vec::new(), disturbed: None, products: 0, runs: true });
        self.runners.len() - 1
    }

    /// What is to be done, where `more` may enter.
    pub(crate) fn next(&self, more: bool) -> Next {
        let running = || self.runners.iter().enumerate().filter(|(_, runner)| runner.runs);
        let measure =
            |(runner, known): (usize, &Runner)| Next::Measure { runner, products: known.next_products() };
        let left = self.left();
        // Of the first to enter, something must be known.
        if left <= 0.0 && self.best().is_some() {
            return Next::Stop(Stop::Budget);
        }
        // Without rows no product takes any time, and nothing is faster.
        if self.exact && self.best().is_some() && self.fastest() == 0.0 {
            return Next::Stop(Stop::Alike);
        }
        if let Some(entering) = running().find(|(_, runner)| runner.turns.is_empty()) {
            return measure(entering);
        }
        let behind = |runner: usize| self.behind(runner).unwrap_or(f64::INFINITY);
        if !self.exact
            && let Some(best) = self.best()
        {
            // Who looks faster than the fastest is to show it, and the fastest itself is what all are compared with.
            let known = self.runners[best].turns.len().clamp(2, ROUNDS.len());
            let looks_faster =
                running().find(|(index, runner)| runner.turns.len() < known && behind(*index) <= 1.0);
            if let Some(faster) = looks_faster {
                return measure(faster);
            }
        }
        let one_left = running().count() <= 1;
        if more && (one_left || left > 1.0 - ENTERING) {
            return Next::Enter;
        }
        if one_left {
            return Next::Stop(Stop::OneLeft);
        }
        let least = running().min_by(|(a, x), (b, y)| {
            x.turns.len().cmp(&y.turns.len()).then(behind(*a).total_cmp(&behind(*b)))
        });
        match least {
            Some((runner, known)) if !self.exact && known.turns.len() < LAST + ENOUGH => {
                let needed = f64::from(1 + known.next_products()) * self.fastest() * behind(runner);
                if self.limit().is_some_and(|limit| self.spent + needed > limit) {
                    return Next::Stop(Stop::Budget);
                }
                measure((runner, known))
            }
            _ => Next::Stop(Stop::Alike),
        }
    }

    /// What so many products of a runner took, each. Whoever is clearly behind by now runs no more. The very first turn is repeated as
    /// one that was disturbed is: there is none to compare it with, and the budget is counted in it.
    pub(crate) fn record(&mut self, runner: usize, products: u32, time: f64) {
        let is_first = !self.exact && self.runners.iter().all(|runner| runner.turns.is_empty());
        let recorded = &mut self.runners[runner];
        recorded.products += products as usize;
        let before = recorded.turns.last().filter(|_| recorded.turns.len() <= LAST);
        let time = match recorded.disturbed.take() {
            Some(disturbed) => {
                let (lesser, longer) = (time.min(disturbed), time.max(disturbed));
                // What disturbed it is no product's time.
                if !self.is_of_time() {
                    self.spent -= self.of_products(products, longer) - self.of_products(products, lesser);
                }
                lesser
            }
            None if is_first || before.is_some_and(|before| time > DISTURBED * before) => {
                recorded.disturbed = Some(time);
                return;
            }
            None => time,
        };
        self.runners[runner].turns.push(time);
        self.leave_behind();
    }

    /// Takes those out that are clearly behind, and the slowest of too many.
    fn leave_behind(&mut self) {
        let Some(best) = self.best() else { return };
        let behind: Vec<_> = (0..self.runners.len()).map(|runner| self.behind(runner)).collect();
        for (runner, behind) in self.runners.iter_mut().zip(&behind) {
            let (Some(behind), Some(round)) = (behind, runner.round()) else { continue };
            let allowed = if self.exact { 0.0 } else { ROUNDS[round].behind };
            runner.runs &= *behind <= 1.0 + allowed;
        }
        let mut running: Vec<_> = behind
            .into_iter()
            .enumerate()
            .filter(|(runner, _)| self.runners[*runner].runs && *runner != best)
            .filter_map(|(runner, behind)| Some((behind?, runner)))
            .collect();
        running.sort_by(|a, b| a.0.total_cmp(&b.0));
        running.into_iter().skip(MOST_RUNNERS - 1).for_each(|(_, runner)| self.runners[runner].runs = false);
    }

    /// So much was spent: what products took where the limit is one of products.
    pub(crate) fn spend(&mut self, amount: f64) {
        self.spent += amount;
    }

    /// What so many products spend that took so much each, with the one before them that did not count: what is not for the turn to
    /// begin and end.
    pub(crate) fn of_products(&self, products: u32, time: f64) -> f64 {
        if self.exact {
            return time * f64::from(products);
        }
        let product = (time - self.around() / f64::from(products)).max(0.0);
        product * f64::from(1 + products)
    }

    /// Whether it may take so much time, and not so many products.
    pub(crate) fn is_of_time(&self) -> bool {
        matches!(self.limit, Limit::Amount(_))
    }

    /// The fastest so far: of those that had a turn of the last round that anybody had, by what a product took there with its share
    /// of making the plan.
    pub(crate) fn best(&self) -> Option<usize> {
        let known = self.runners.iter().enumerate().filter(|(_, runner)| runner.runs);
        let known = known.filter_map(|(index, runner)| Some((runner.round()?, index)));
        let fastest = known.min_by(|(a, x), (b, y)| {
            b.cmp(a).then(self.runners[*x].time(*a).total_cmp(&self.runners[*y].time(*b)))
        });
        fastest.map(|(_, index)| index)
    }

    /// What a product of the fastest takes.
    fn fastest(&self) -> f64 {
        let measured = self.best().and_then(|best| self.measured(best));
        measured.map_or(f64::INFINITY, |(product, _)| product)
    }

    /// What begins and ends a turn: the turns of the fastest with one product take longer by that, and those with several by a part.
    fn around(&self) -> f64 {
        let best = self.best().map(|best| &self.runners[best]);
        let Some((best, round)) = best.and_then(|best| Some((best, best.round()?))) else { return 0.0 };
        if round == 0 {
            return 0.0;
        }
        let (one, several) = (f64::from(ROUNDS[0].products), f64::from(ROUNDS[round].products));
        let around = (best.turns[0] - best.product(round)) / (1.0 / one - 1.0 / several);
        // Nothing would be left of a product: the first turn was disturbed.
        if around >= several * best.product(round) { 0.0 } else { around.max(0.0) }
    }

    /// What a product of a runner takes over what one of the fastest does, with their shares of making the plans, in the last round
    /// that both had a turn of.
    pub(crate) fn behind(&self, runner: usize) -> Option<f64> {
        self.over(runner, self.best()?)
    }

    /// The same over what one of another runner does.
    pub(crate) fn over(&self, runner: usize, other: usize) -> Option<f64> {
        let (runner, other) = (&self.runners[runner], &self.runners[other]);
        let round = runner.round()?.min(other.round()?);
        let (time, of_other) = (runner.time(round), other.time(round));
        Some(if time == of_other { 1.0 } else { time / of_other })
    }

    /// Takes a runner out of the race.
    pub(crate) fn withdraw(&mut self, runner: usize) {
        self.runners[runner].runs = false;
    }

    /// Whether a runner is still in the race.
    pub(crate) fn runs(&self, runner: usize) -> bool {
        self.runners[runner].runs
    }

    /// What a product of a runner takes, by its longest turns without what begins and ends them, and how many were measured.
    pub(crate) fn measured(&self, runner: usize) -> Option<(f64, usize)> {
        let runner = &self.runners[runner];
        let round = runner.round()?;
        let around = self.around() / f64::from(ROUNDS[round].products);
        Some(((runner.product(round) - around).max(0.0), runner.products))
    }

    /// How much may be spent, where that is limited.
    fn limit(&self) -> Option<f64> {
        let limit = match self.limit {
            Limit::Amount(amount) => amount,
            Limit::Products(_) if self.exact => return None,
            Limit::Products(products) => products * self.fastest(),
        };
        Some(limit).filter(|limit| limit.is_finite())
    }

    /// The part of the budget that is left.
    pub(crate) fn left(&self) -> f64 {
        self.limit().map_or(1.0, |limit| 1.0 - self.spent / limit.max(f64::MIN_POSITIVE))
    }

    /// Whether the same product always takes the same, so that whoever may enter does, and multiplies once.
    pub(crate) fn is_exact(&self) -> bool {
        self.exact
    }

    /// What is measured errs by as much: the time of one over that of the fastest, up to which it may be the faster.
    pub(crate) fn alike(&self) -> f64 {
        if self.exact { 1.0 } else { ALIKE }
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

        /// The same, and what was spent.
        fn spending_race(mut self, limit: Limit) -> (usize, Stop, Vec<usize>, f64) {
            let mut race = Race::new(limit, self.noise == 0.0);
            let mut entered = 0;
            loop {
                match race.next(entered < self.times.len()) {
                    Next::Enter => entered = race.enter(0.0) + 1,
                    Next::Measure { runner, products } => {
                        let took = match self.noise {
                            0.0 => self.times[runner] * f64::from(products),
                            _ => (0..products).map(|_| self.product(runner)).sum(),
                        };
                        let time = took / f64::from(products);
                        race.spend(race.of_products(products, time));
                        race.record(runner, products, time);
                    }
                    Next::Stop(why) => {
                        let products = (0..entered).map(|runner| race.measured(runner).unwrap().1).collect();
                        return (race.best().unwrap(), why, products, race.spent);
                    }
                }
            }
        }
    }

    /// The very first turn of a race, which is repeated.
    fn record_first(race: &mut Race, runner: usize, time: f64) {
        race.record(runner, 1, time);
        assert_eq!(race.next(true), Next::Measure { runner, products: 1 });
        race.record(runner, 1, time);
    }

    #[test]
    fn a_first_turn_that_takes_long_does_not_end_the_race() {
        // What begins a turn takes three times as long as a product, and the first turns more besides.
        let race = |late: [f64; 2]| {
            let mut race = Race::new(Limit::Products(200.0), false);
            let (mut entered, mut turns) = (0, 0);
            loop {
                match race.next(entered < 32) {
                    Next::Enter => entered = race.enter(0.0) + 1,
                    Next::Measure { runner, products } => {
                        let product = if runner == 31 { 0.9 } else { 1.4 };
                        let around = 3.0 + late.get(turns).unwrap_or(&0.0);
                        let time = product + around / f64::from(products);
                        turns += 1;
                        race.spend(race.of_products(products, time));
                        race.record(runner, products, time);
                    }
                    Next::Stop(why) => return (race.best(), why, entered),
                }
            }
        };
        for late in [[0.0, 0.0], [4.0, 0.0], [0.0, 4.0], [1e3, 0.0], [0.0, 1e3]] {
            assert_eq!(race(late), (Some(31), Stop::OneLeft, 32), "{late:?}");
        }
    }

    #[test]
    fn what_is_clearly_behind_has_one_turn() {
        let (best, why, products) = Device::new(&[1.3, 1.0, 1.6, 1.7], 0.01).race(Limit::Products(200.0));
        assert_eq!((best, why), (1, Stop::OneLeft));
        assert_eq!(products, [6, 5, 1, 1]);
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
            assert!(spent < 200.0, "{spent} of 200");
        }
        assert!(found >= 195, "{found} of 200");
        // Long turns fit the budget, or are not begun.
        for budget in 20..90 {
            let budget = f64::from(budget);
            let (.., spent) =
                Device::new(&[1.0, 1.001, 1.002, 1.003], 0.001).spending_race(Limit::Products(budget));
            assert!(spent <= 1.01 * budget, "{spent} of {budget}");
        }
    }

    #[test]
    fn those_that_do_not_differ_do_not_use_up_a_large_budget() {
        let (_, why, products) = Device::new(&[1.0, 1.001, 1.0005], 0.004).race(Limit::Products(1e6));
        assert_eq!((why, products), (Stop::Alike, [2, 1, 1].map(|first| first + 4 + 3 * 12).to_vec()));
    }

    #[test]
    fn a_small_budget_still_measures_one() {
        let (best, why, products) = Device::new(&[1.0, 0.5], 0.02).race(Limit::Amount(0.1));
        assert_eq!((best, why, products.len()), (0, Stop::Budget, 1));
    }

    #[test]
    fn runners_are_compared_by_turns_that_both_had() {
        // What begins a turn takes as long as a product, so that long turns seem faster.
        let mut race = Race::new(Limit::Products(200.0), false);
        let (known, new, slower) = (race.enter(0.0), race.enter(0.0), race.enter(0.0));
        assert_eq!(race.of_products(1, 2.0), 4.0, "nothing is known of what begins a turn");
        record_first(&mut race, known, 2.0);
        race.record(known, 4, 1.25);
        race.record(slower, 1, 2.04);
        race.record(new, 1, 1.98);
        assert_eq!((race.best().unwrap(), race.runs(new), race.runs(slower)), (known, true, true));
        assert_eq!((race.behind(known), race.behind(slower)), (Some(1.0), Some(1.02)));
        assert_eq!(race.next(true), Next::Measure { runner: new, products: 4 }, "it looks faster");
        race.record(new, 4, 1.235);
        assert_eq!(race.best().unwrap(), new);
        // The others have their longer turns when all have entered, the fastest first.
        assert_eq!(race.next(true), Next::Enter);
        assert_eq!(race.next(false), Next::Measure { runner: slower, products: 4 });
        race.record(slower, 4, 1.3);
        assert!(!race.runs(slower));
        assert_eq!(race.next(false), Next::Measure { runner: new, products: 12 });
        race.record(new, 12, 1.09);
        race.record(known, 12, 1.0 + 1.0 / 12.0);
        assert_eq!(race.best().unwrap(), known);
        // What is told, and what the budget is counted in, is without it.
        for (runner, product, products) in [(known, 1.0, 18), (new, 1.09 - 1.0 / 12.0, 17), (slower, 1.05, 5)]
        {
            let measured = race.measured(runner).unwrap();
            assert!((measured.0 - product).abs() < 1e-9 && measured.1 == products, "{measured:?}");
        }
        assert!((race.of_products(4, 1.3) - 5.0 * 1.05).abs() < 1e-9);
    }

    #[test]
    fn a_disturbed_turn_is_repeated_once() {
        let mut race = Race::new(Limit::Products(200.0), false);
        let (known, other) = (race.enter(0.0), race.enter(0.0));
        record_first(&mut race, known, 1.0);
        race.record(other, 1, 0.99);
        race.record(known, 4, 1.0);
        race.record(other, 4, 1.3);
        assert!(race.runs(other));
        assert_eq!(race.next(true), Next::Measure { runner: other, products: 4 });
        race.record(other, 4, 0.99);
        assert_eq!((race.best().unwrap(), race.measured(other)), (other, Some((0.99, 9))));
        // Twice the same is what it takes.
        race.record(known, 12, 1.2);
        race.record(known, 12, 1.21);
        assert_eq!(race.measured(known).unwrap().0, 1.2);
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
            let time = 1.0 + 1e-4 * runner as f64;
            if runner == 0 { record_first(&mut race, runner, time) } else { race.record(runner, 1, time) }
        }
        let running: Vec<_> = (0..20).filter(|runner| race.runs(*runner)).collect();
        assert_eq!(running, Vec::from_iter(0..MOST_RUNNERS));
    }

    #[test]
    fn who_is_withdrawn_is_fastest_no_more() {
        let mut race = Race::new(Limit::Products(200.0), false);
        let (fast, slow) = (race.enter(0.0), race.enter(0.0));
        record_first(&mut race, fast, 1.0);
        race.record(slow, 1, 1.01);
        assert_eq!(race.best(), Some(fast));
        race.withdraw(fast);
        assert_eq!(race.best(), Some(slow));
        race.withdraw(slow);
        assert_eq!(race.best(), None);
    }

    #[test]
    fn the_share_of_making_a_plan_counts() {
        let mut race = Race::new(Limit::Products(200.0), false);
        let (dear, cheap) = (race.enter(0.5), race.enter(0.0));
        record_first(&mut race, dear, 1.0);
        race.record(cheap, 1, 1.2);
        assert_eq!(race.best(), Some(cheap));
        assert!(!race.runs(dear));
    }
}
