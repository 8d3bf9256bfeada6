export const NAMES_DOCUMENTATION = `# tm_names

The mine tree and nothing else: a Strict overlay (BRC-183), in which every host derives the same tree.

- Admitted: the genesis output; outputs 0, 1 and 2 of a transaction that spends an admitted node and is a mint
  (character free and in the set, proof of work, the three outputs restated exactly, 1 satoshi each).
- A mint with a merkle path counts whatever its unlocking script is. Without one, the script must be five minimal pushes.
- Output 0 is the restated node, output 1 the new node, output 2 the name. The name comes from the tree, never from the
  text of an envelope.
- Transfers of a name are not admitted here; \`tm_ordinals\` follows them.
- Spent coins are kept: the lineage from genesis proves a name.
`
