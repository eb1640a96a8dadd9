//! Holds the guide's chapters 3 to 11 to this crate: their Rust is taken from its sources.

const CHAPTERS: [&str; 9] = [
    include_str!("../../../docs/guide/03-children.md"),
    include_str!("../../../docs/guide/04-conditions.md"),
    include_str!("../../../docs/guide/05-finalizers.md"),
    include_str!("../../../docs/guide/06-watches.md"),
    include_str!("../../../docs/guide/07-controllers.md"),
    include_str!("../../../docs/guide/08-configuration.md"),
    include_str!("../../../docs/guide/09-validation.md"),
    include_str!("../../../docs/guide/10-conversion.md"),
    include_str!("../../../docs/guide/11-certificates.md"),
];
const SOURCES: [&str; 13] = [
    include_str!("../src/admission.rs"),
    include_str!("../src/api.rs"),
    include_str!("../src/api/v1beta1.rs"),
    include_str!("../src/cache.rs"),
    include_str!("../src/desired.rs"),
    include_str!("../src/desired/service.rs"),
    include_str!("../src/directory.rs"),
    include_str!("../src/lib.rs"),
    include_str!("../src/main.rs"),
    include_str!("../src/user.rs"),
    include_str!("cache.rs"),
    include_str!("program.rs"),
    include_str!("webhooks.rs"),
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
