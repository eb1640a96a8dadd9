//! Holds the guide's chapters 3 to 8 to this crate: their Rust is taken from its sources.

const CHAPTERS: [&str; 6] = [
    include_str!("../../../docs/guide/03-children.md"),
    include_str!("../../../docs/guide/04-conditions.md"),
    include_str!("../../../docs/guide/05-finalizers.md"),
    include_str!("../../../docs/guide/06-watches.md"),
    include_str!("../../../docs/guide/07-controllers.md"),
    include_str!("../../../docs/guide/08-configuration.md"),
];
const SOURCES: [&str; 10] = [
    include_str!("../src/api.rs"),
    include_str!("../src/cache.rs"),
    include_str!("../src/desired.rs"),
    include_str!("../src/desired/service.rs"),
    include_str!("../src/directory.rs"),
    include_str!("../src/lib.rs"),
    include_str!("../src/main.rs"),
    include_str!("../src/user.rs"),
    include_str!("cache.rs"),
    include_str!("program.rs"),
];

#[test]
fn the_rust_of_the_guide_is_this_crates() {
    for chapter in CHAPTERS {
        let title = chapter.lines().next().unwrap_or_default();
        let snippets: Vec<_> =
            chapter.split("\n```rust\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
        assert!(snippets.len() >= 3, "{title}: {} snippets", snippets.len());
        for snippet in snippets {
            let found = SOURCES.iter().any(|source| source.contains(snippet));
            assert!(found, "{title}: not in operators/cache:\n{snippet}");
        }
    }
}
