//! The wanted fields as a tree of keys.

use crate::projected::Field;

/// What to look for in which object; the first node is the record.
#[derive(Debug)]
pub(super) struct Plan {
    fields: &'static [Field],
    nodes: Vec<Node>,
    keys: usize,
}

/// An object some of whose keys are wanted, or lead to wanted ones.
#[derive(Debug)]
pub(super) struct Node {
    /// In the order in which the struct first names them.
    pub(super) children: Vec<Child>,
    /// Whether all fields below are optional, so that `null` may stand for the object.
    pub(super) optional: bool,
}

#[derive(Debug)]
pub(super) struct Child {
    pub(super) key: &'static str,
    /// Numbers the keys of all nodes, to note which were seen.
    pub(super) id: usize,
    pub(super) target: Target,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Target {
    /// The index of a wanted field.
    Field(usize),
    /// The index of a node.
    Node(usize),
}

impl Plan {
    pub(super) fn new(fields: &'static [Field]) -> Self {
        let root = Node { children: Vec::new(), optional: false };
        let mut plan = Self { fields, nodes: vec![root], keys: 0 };
        for (index, field) in fields.iter().enumerate() {
            plan.add(index, field);
        }
        plan
    }

    fn add(&mut self, index: usize, field: &Field) {
        let (last, through) = field.path.split_last().expect("a path has at least one key");
        let mut node = 0;
        for key in through {
            node = match self.child(node, key) {
                Some(Target::Node(next)) => {
                    self.nodes[next].optional &= field.optional;
                    next
                }
                Some(Target::Field(_)) => panic!("field `{}` leads through another wanted field", field.name),
                None => {
                    let next = self.nodes.len();
                    self.nodes.push(Node { children: Vec::new(), optional: field.optional });
                    self.insert(node, key, Target::Node(next));
                    next
                }
            };
        }
        assert!(self.child(node, last).is_none(), "field `{}` is named twice", field.name);
        self.insert(node, last, Target::Field(index));
    }

    fn insert(&mut self, node: usize, key: &'static str, target: Target) {
        self.nodes[node].children.push(Child { key, id: self.keys, target });
        self.keys += 1;
    }

    fn child(&self, node: usize, key: &str) -> Option<Target> {
        self.nodes[node].children.iter().find(|child| child.key == key).map(|child| child.target)
    }

    pub(super) const fn fields(&self) -> &'static [Field] {
        self.fields
    }

    pub(super) fn node(&self, index: usize) -> &Node {
        &self.nodes[index]
    }

    /// How many keys there are in all nodes together.
    pub(super) const fn keys(&self) -> usize {
        self.keys
    }
}
