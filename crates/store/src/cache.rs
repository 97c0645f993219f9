//! A bounded cache in two generations: what was not used for a generation is dropped.

use std::collections::HashMap;
use std::hash::Hash;

#[derive(Debug)]
pub(crate) struct Cache<K, V> {
    hot: HashMap<K, (V, usize)>,
    cold: HashMap<K, (V, usize)>,
    weight: usize,
    /// The weight at which the hot generation turns cold.
    limit: usize,
}

impl<K: Hash + Eq + Clone, V> Cache<K, V> {
    /// Holds at most about twice this weight.
    pub(crate) fn new(limit: usize) -> Self {
        Self { hot: HashMap::new(), cold: HashMap::new(), weight: 0, limit }
    }

    pub(crate) fn get(&mut self, key: &K) -> Option<&mut V> {
        if let Some((value, weight)) = self.cold.remove(key) {
            self.put(key.clone(), value, weight);
        }
        self.hot.get_mut(key).map(|(value, _)| value)
    }

    pub(crate) fn put(&mut self, key: K, value: V, weight: usize) {
        if self.weight + weight > self.limit {
            self.cold = std::mem::take(&mut self.hot);
            self.weight = 0;
        }
        self.cold.remove(&key);
        let before = self.hot.insert(key, (value, weight)).map_or(0, |(_, weight)| weight);
        self.weight = (self.weight + weight).saturating_sub(before);
    }

    /// Takes a value out, with its weight.
    pub(crate) fn remove_with_weight(&mut self, key: &K) -> Option<(V, usize)> {
        let hot = self.hot.remove(key);
        self.weight -= hot.as_ref().map_or(0, |(_, weight)| *weight);
        hot.or_else(|| self.cold.remove(key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_used_stays_and_the_rest_goes() {
        let mut cache = Cache::new(2);
        for n in 0..10 {
            cache.put(n, n, 1);
            assert!(cache.get(&0).is_some(), "used all the time");
        }
        assert!(cache.get(&3).is_none());
        assert!(cache.hot.len() + cache.cold.len() <= 4);
    }
}
