export const NAMES_LOOKUP_DOCUMENTATION = `# ls_names

Queries about the mine tree that \`tm_names\` follows. Every answer is a list of outputs with BEEF.

| query | answer |
| --- | --- |
| \`{"name": "alice"}\` | the current output of the name; nothing if the name is not claimed or was burnt |
| \`{"origin": "alice"}\` | the output in which the name was minted |
| \`{"mine": "alice"}\` | the live node of the longest mined prefix, from which mining continues; nothing if the name is taken |
| \`{"node": "ali"}\` | the live node of exactly this prefix |
| \`{"origins": ["<txid>_<vout>"]}\` | those of the outpoints that are origins of genuine names; at most 1,000 |
| \`{"prefix": "al", "limit": 100, "after": "alf"}\` | origins sorted by name, starting after \`after\`; at most 100 |

A page of a prefix may have fewer outputs than its limit, because its BEEF is limited in bytes; JSON then says
\`"truncated": true\`. Only an empty page is the last: continue with the name of the last output.

The first four accept \`"history": true\`. The BEEF then holds everything that proves the output genuine (BRC-174 section 4), each
transaction once, parents before children, the output's own last. For an origin or a node, that is every transaction that
spends a node on the way from genesis to it. For a current output, it is these, every transaction of the ordinal from the
origin on, and those whose values place it. Transactions that this host does not have are left out, and a verifier finds
where the history ends.

An answer with history is JSON even if the SDK's client asks for binary (\`X-Aggregation: yes\`), because that client drops
everything behind a proven output from a binary BEEF. Send \`Accept: application/octet-stream\` to get binary. An engine that
does not assemble BEEF as this project's server does gets a selector instead; 0.4.6 of \`@bsv/overlay\` fails on it.

Transfers are known through \`tm_ordinals\`. A host that does not run it answers \`{"name"}\` with the origin.
`

export const ORDINALS_LOOKUP_DOCUMENTATION = `# ls_ordinals

Questions about the ordinals and content that \`tm_ordinals\` holds. Every answer is a list of outputs with BEEF.

| query | answer |
| --- | --- |
| \`{"outpoint": "<txid>_<vout>"}\` | that output, where this host holds it; nothing where it does not |
| \`{"outpoint": "<txid>_<vout>", "seq": 3}\` | the ordinal that stands there, at that step of its life: \`0\` and \`-2\` its origin, \`-1\` where it is now; nothing where there is no such step, or its origin is not known here |
| \`{"map": {"app": "shop", "type": "card"}}\` | where the ordinals are now whose metadata, merged from their origin on, has all of these entries, with the texts as they were inscribed; a list has each of its texts. At most 16 entries. An ordinal is found by its first 16, and by up to 256 where they are long |
| \`{"parent": "<txid>_<vout>"}\` | where the ordinals are now whose latest inscription that names a parent names this one |
| \`{"contentType": "image/png"}\` | where the ordinals are now whose latest content is of this type, whatever its parameters |
| \`{"owner": "<address>"}\` | the coins that nothing has spent yet and this P2PKH address holds |

The last four take a \`limit\` of 1 to 100 (100 where it is left out), and \`after\`: the last outpoint of the page before.
A page may have fewer outputs than its limit, since its BEEF is bounded in bytes; as JSON it then says \`"truncated": true\`. Only an
empty page is the last. Ordinals keep their order while they move on. Where an ordinal has been burnt, where it is now is its last output, spent;
its origin has to be known here for it to be found, except by its owner.
`
