//! One text as several, which hold its kernels between them and can be compiled side by side.

use std::ops::Range;

const KERNEL: &str = "extern \"C\" __global__";

/// At most `count` texts, at least one. Each is the whole text without the kernels that are in another of them, whose lines are
/// empty in it: every line has the number that it has in the whole. A kernel reaches from a line that begins as kernels do to
/// the next that is a closing brace; what is long is taken to take long.
pub(crate) fn split(source: &str, count: usize) -> Vec<String> {
    let lines: Vec<&str> = source.split_inclusive('\n').collect();
    let mut kernels = kernels(&lines);
    let bytes = |kernel: &Range<usize>| lines[kernel.clone()].iter().map(|line| line.len()).sum::<usize>();
    kernels.sort_by_key(|kernel| std::cmp::Reverse(bytes(kernel)));
    let mut parts = vec![(0, Vec::new()); count.min(kernels.len()).max(1)];
    for kernel in &kernels {
        let (taken, part) = parts.iter_mut().min_by_key(|(taken, _)| *taken).expect("there is one");
        *taken += bytes(kernel);
        part.push(kernel);
    }
    let text = |own: &[&Range<usize>]| {
        let mut text = lines.clone();
        for other in kernels.iter().filter(|kernel| !own.contains(kernel)) {
            text[other.clone()].fill("\n");
        }
        text.concat()
    };
    parts.iter().map(|(_, own)| text(own)).collect()
}

/// The lines of each kernel.
fn kernels(lines: &[&str]) -> Vec<Range<usize>> {
    let mut kernels = Vec::new();
    let mut next = 0;
    while let Some(begin) = (next..lines.len()).find(|line| lines[*line].starts_with(KERNEL)) {
        let end = (begin..lines.len())
            .find(|line| lines[*line].trim_end() == "}")
            .map_or(lines.len(), |end| end + 1);
        kernels.push(begin..end);
        next = end;
    }
    kernels
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "int helper() {\n  return 1;\n}\n\nextern \"C\" __global__ void first() {\n  if (true) {\n    helper();\n  }\n}\n\
                          \n// About the second.\nextern \"C\" __global__ void\nsecond(int a) {\n}\n#define LAST\nextern \"C\" __global__ void third() {\n}\n";

    #[test]
    fn every_kernel_is_in_one_text_at_its_line() {
        let line_of = |text: &str, what: &str| text.lines().position(|line| line.contains(what));
        for count in 0..6 {
            let texts = split(SOURCE, count);
            assert_eq!(texts.len(), count.clamp(1, 3));
            for kernel in ["first()", "second(", "third()"] {
                let found: Vec<_> = texts.iter().filter_map(|text| line_of(text, kernel)).collect();
                assert_eq!(found, [line_of(SOURCE, kernel).unwrap()], "{kernel} of {count}");
            }
            for text in &texts {
                for kept in ["return 1;", "About the second", "#define LAST"] {
                    assert_eq!(line_of(text, kept), line_of(SOURCE, kept));
                }
            }
        }
        assert_eq!(split(SOURCE, 1), [SOURCE]);
    }

    #[test]
    fn a_text_without_kernels_and_one_that_ends_within_one_stay_whole() {
        for text in ["", "int a;\n", "extern \"C\" __global__ void open() {\n  int a;"] {
            assert_eq!(split(text, 4), [text]);
        }
    }

    /// Kernels that are as long take as long: none waits for all others.
    #[test]
    fn kernels_are_shared_out_by_their_length() {
        let kernel = |name: &str, lines: usize| {
            format!("{KERNEL} void {name}() {{\n{}}}\n", "  work();\n".repeat(lines))
        };
        let source = [kernel("a", 10), kernel("b", 90), kernel("c", 40), kernel("d", 40)].concat();
        let texts = split(&source, 2);
        assert_eq!(texts.iter().map(|text| text.matches("work").count()).collect::<Vec<_>>(), [90, 90]);
    }
}
