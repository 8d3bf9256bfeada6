export const NAMES_DOCUMENTATION = `# tm_names

The mine tree and nothing else: a Strict overlay (BRC-183), in which every host derives the same tree.

- Admitted: the genesis output; outputs 0, 1 and 2 of a transaction that spends an admitted node and is a mint
  (character free and in the set, proof of work, the three outputs restated exactly, 1 satoshi each).
- A mint with a merkle path counts whatever its unlocking script is. Without one, it must be what every node relays: five minimal pushes of at most 500,000 bytes, the first of one byte, in a transaction of version 1 or 2 and at most 10,000,000 bytes.
- Output 0 is the restated node, output 1 the new node, output 2 the name. The name comes from the tree, never from the
  text of an envelope.
- Transfers of a name are not admitted here; \`tm_ordinals\` follows them.
- Spent coins are kept: the lineage from genesis proves a name.
- A plain inscription or a payment admits nothing here. Clients of \`@bsv/sdk\` 3 count a broadcast only if every topic that they
  name admitted, kept or removed something: submit what is no mint to \`tm_ordinals\` alone, and a mint to either or both.
`

export const ORDINALS_DOCUMENTATION = `# tm_ordinals

Ordinals and content: a Federated overlay (BRC-183), in which each host keeps the collection that was submitted to it.

- Admitted: every output with content (an inscription envelope or B data, of any value); every 1-satoshi output with MAP;
  every 1-satoshi output that receives an admitted ordinal by the arithmetic of BRC-159.
- The values of the inputs before an ordinal place it. If one is neither in the BEEF nor known to this host, nothing is
  admitted by guess.
- A host may narrow this by a policy: a maximum content size, accepted content types, a rule of its own. The policy judges
  an output by its own content or MAP. A pure transfer of an admitted ordinal has neither, and is admitted whatever the
  policy. A reinscription that the policy refuses is not admitted even if it receives an ordinal: the ordinal's chain ends
  before it on this host.
- Output 2 of a mint is judged like any other. If its type is not accepted, the name is still in \`tm_names\`, but its
  transfers are not followed here.
- Refused outputs are neither found nor served. A transaction is stored whole if any of its outputs was admitted.
- Spent coins are kept: the transfer chain is the history of an ordinal.
`
