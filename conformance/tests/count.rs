//! There are as many cases of each sort as were promised.

use conformance::count;

#[test]
fn no_sort_of_cases_is_rare() {
    let rare: Vec<_> = count::all().unwrap().into_iter().filter(|count| count.found < count.least).collect();
    assert!(rare.is_empty(), "{rare:?}");
}
