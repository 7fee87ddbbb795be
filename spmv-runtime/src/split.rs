//! One text as several, which hold its kernels between them and can be compiled side by side.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

const KERNEL: &str = "extern \"C\" __global__";

/// At most `count` texts, at least one, the one that takes longest to compile first. Each is the whole text without the kernels
/// that are in another of them, whose lines are empty in it: every line has the number that it has in the whole. A kernel reaches
/// from a line that begins as kernels do to the next that is a closing brace; what is long with the functions that it names is
/// taken to take long. The kernels of `products` are in one text with others only where that is the only one.
pub(crate) fn split(source: &str, count: usize, products: &[String]) -> Vec<String> {
    let lines: Vec<&str> = source.split_inclusive('\n').collect();
    let weigh = Weights::of(&lines);
    let heads: Vec<_> = products.iter().map(|name| format!("{name}(")).collect();
    let mut kernels: Vec<Kernel> = kernels(&lines)
        .into_iter()
        .map(|range| {
            let weight = weigh.kernel(&lines[range.clone()]);
            let names = |line: &&str| heads.iter().any(|head| line.contains(head));
            let multiplies = lines[range.clone()].iter().any(names);
            Kernel { range, weight, multiplies }
        })
        .collect();
    kernels.sort_by_key(|kernel| std::cmp::Reverse(kernel.weight));
    let (of_products, others): (Vec<_>, Vec<_>) = kernels.iter().partition(|kernel| kernel.multiplies);
    let mut parts = if of_products.is_empty() || others.is_empty() || count < 2 {
        shared_out(&kernels.iter().collect::<Vec<_>>(), count)
    } else {
        let own = of_products.len().min(count / 2);
        [shared_out(&of_products, own), shared_out(&others, count - own)].concat()
    };
    let weight = |part: &Vec<&Kernel>| part.iter().map(|kernel| kernel.weight).sum::<usize>();
    parts.sort_by_key(|part| std::cmp::Reverse(weight(part)));
    let text = |own: &Vec<&Kernel>| {
        let mut text = lines.clone();
        for other in kernels.iter().filter(|kernel| !own.iter().any(|own| own.range == kernel.range)) {
            text[other.range.clone()].fill("\n");
        }
        text.concat()
    };
    parts.iter().map(text).collect()
}

#[derive(Debug)]
struct Kernel {
    range: Range<usize>,
    weight: usize,
    multiplies: bool,
}

/// Kernels, the heaviest of which comes first, in at most so many parts that are about as heavy; at least one.
fn shared_out<'a>(kernels: &[&'a Kernel], count: usize) -> Vec<Vec<&'a Kernel>> {
    let mut parts = vec![(0, Vec::new()); count.min(kernels.len()).max(1)];
    for kernel in kernels {
        let (taken, part) = parts.iter_mut().min_by_key(|(taken, _)| *taken).expect("there is one");
        *taken += kernel.weight;
        part.push(*kernel);
    }
    parts.into_iter().map(|(_, part)| part).collect()
}

/// Functions by their names, with what each is long and names.
struct Weights<'a> {
    functions: HashMap<&'a str, Function<'a>>,
}

#[derive(Default)]
struct Function<'a> {
    bytes: usize,
    names: HashSet<&'a str>,
}

impl<'a> Weights<'a> {
    /// What begins in the first column and ends with its last brace, or with a closing one in the first column, is a function, or a
    /// structure with some; several of one name count as one.
    fn of(lines: &[&'a str]) -> Self {
        let mut functions: HashMap<&str, Function> = HashMap::new();
        let mut next = 0;
        while let Some(begin) = (next..lines.len()).find(|line| begins_definition(lines[*line])) {
            let (mut depth, mut had_braces) = (0, false);
            let ends = |line: &usize| {
                let text = lines[*line].trim_end();
                had_braces |= text.contains('{');
                depth += text.matches('{').count() as i64 - text.matches('}').count() as i64;
                matches!(text, "}" | "};") || depth <= 0 && (had_braces || text.ends_with(';'))
            };
            let end = (begin..lines.len()).find(ends).map_or(lines.len(), |end| end + 1);
            let head = lines[begin..end].iter().take_while(|line| !line.starts_with(' '));
            // The name of a structure, or what stands before the first parenthesis.
            let name = head.clone().find_map(|line| match line.trim_start().strip_prefix("struct ") {
                Some(rest) => words(rest).next(),
                None => line.split_once('(').and_then(|(before, _)| words(before).last()),
            });
            if let Some(name) = name.filter(|_| !lines[begin].starts_with(KERNEL)) {
                let function = functions.entry(name).or_default();
                for line in &lines[begin..end] {
                    function.bytes += line.len();
                    function.names.extend(words(line));
                }
            }
            next = end;
        }
        Weights { functions }
    }

    /// Bytes of a kernel with the functions that it names, and that these name.
    fn kernel(&self, lines: &[&'a str]) -> usize {
        let mut bytes = lines.iter().map(|line| line.len()).sum();
        let mut seen = HashSet::new();
        let mut waiting: Vec<&str> = lines.iter().flat_map(|line| words(line)).collect();
        while let Some(name) = waiting.pop() {
            if let Some(function) = self.functions.get(name).filter(|_| seen.insert(name)) {
                bytes += function.bytes;
                waiting.extend(function.names.iter().copied());
            }
        }
        bytes
    }
}

fn begins_definition(line: &str) -> bool {
    line.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') && !line.trim_end().ends_with(';')
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(|word| !word.is_empty())
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

    fn texts(source: &str, count: usize) -> Vec<String> {
        split(source, count, &[])
    }

    #[test]
    fn every_kernel_is_in_one_text_at_its_line() {
        let line_of = |text: &str, what: &str| text.lines().position(|line| line.contains(what));
        for count in 0..6 {
            let texts = texts(SOURCE, count);
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
        assert_eq!(texts(SOURCE, 1), [SOURCE]);
    }

    #[test]
    fn a_text_without_kernels_and_one_that_ends_within_one_stay_whole() {
        for text in ["", "int a;\n", "extern \"C\" __global__ void open() {\n  int a;"] {
            assert_eq!(texts(text, 4), [text]);
        }
    }

    /// Kernels that are as long take as long: none waits for all others.
    #[test]
    fn kernels_are_shared_out_by_their_length() {
        let kernel = |name: &str, lines: usize| {
            format!("{KERNEL} void {name}() {{\n{}}}\n", "  work();\n".repeat(lines))
        };
        let source = [kernel("a", 10), kernel("b", 90), kernel("c", 40), kernel("d", 40)].concat();
        let texts = texts(&source, 2);
        assert_eq!(texts.iter().map(|text| text.matches("work").count()).collect::<Vec<_>>(), [90, 90]);
    }

    /// What a kernel names is long, and what that names.
    #[test]
    fn the_heaviest_comes_first_with_the_functions_that_it_names() {
        let function = |name: &str, calls: &str, lines: usize| {
            format!(
                "template <int kOf>\n__device__ __forceinline__ int {name}(int a,\n    int b) {{\n  {calls}(a);\n{}}}\n\n",
                "  work();\n".repeat(lines)
            )
        };
        let kernel = |name: &str, calls: &str| {
            format!(
                "{KERNEL} void __launch_bounds__(kThreads, sizeof(T))\n{name}(int a) {{\n  {calls}(a);\n}}\n"
            )
        };
        let structure =
            format!("struct Rows {{\n  int of(int a) {{\n{}  }}\n}};\n", "    work();\n".repeat(30));
        let functions = [function("inner", "none", 50), function("outer", "inner", 1), structure].concat();
        let kernels = [kernel("light", "none"), kernel("heavy", "outer"), kernel("middle", "Rows")].concat();
        let source = functions + &kernels;
        let order = |texts: Vec<String>| {
            let heads = ["light(", "heavy(", "middle("];
            let of = |text: &String| heads.into_iter().filter(|head| text.contains(head)).collect::<Vec<_>>();
            texts.iter().map(of).collect::<Vec<_>>()
        };
        assert_eq!(order(split(&source, 3, &[])), [["heavy("], ["middle("], ["light("]]);
        assert_eq!(order(split(&source, 2, &[])), [vec!["heavy("], vec!["light(", "middle("]]);
    }

    /// A function of one line and a constant of two end where they end, and not with the next function.
    #[test]
    fn functions_of_one_line_weigh_what_they_are() {
        let long = format!("__device__ void long_one() {{\n{}}}\n", "  work();\n".repeat(50));
        for short in [
            "template <class T>\n__device__ int short_one(int a) { return a; }\n",
            "__device__ int short_one(int a,\n    int b) { return a; }\n",
            "constexpr int short_one =\n    1;\n",
        ] {
            let text = format!("{short}{long}");
            let weights = Weights::of(&text.lines().collect::<Vec<_>>());
            assert!(weights.kernel(&["short_one"]) < 100, "{short}");
            assert!(weights.kernel(&["long_one"]) > 400, "{short}");
        }
    }

    #[test]
    fn kernels_of_products_are_apart() {
        let kernel = |name: &str| format!("{KERNEL} void\n{name}(int a) {{\n}}\n");
        let source = ["spmv_a_first", "spmv_a_second", "spmv_a", "spmv_a_encoded"].map(kernel).concat();
        let products = ["spmv_a".to_owned(), "spmv_a_encoded".to_owned()];
        let kernels = |count| {
            let of = |text: String| {
                (text.contains("spmv_a(") || text.contains("_encoded("), text.matches("spmv").count())
            };
            let mut texts: Vec<_> = split(&source, count, &products).into_iter().map(of).collect();
            texts.sort();
            texts
        };
        assert_eq!(kernels(1), [(true, 4)]);
        assert_eq!(kernels(2), [(false, 2), (true, 2)]);
        assert_eq!(kernels(3), [(false, 1), (false, 1), (true, 2)]);
        assert_eq!(kernels(4), [(false, 1), (false, 1), (true, 1), (true, 1)]);
        assert_eq!(kernels(usize::MAX), kernels(4));
    }
}
