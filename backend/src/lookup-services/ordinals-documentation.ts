export const ORDINALS_LOOKUP_DOCUMENTATION = `# ls_ordinals

Queries about the ordinals and content that \`tm_ordinals\` holds. Every answer is a list of outputs with BEEF.

| query | answer |
| --- | --- |
| \`{"outpoint": "<txid>_<vout>"}\` | that output, or nothing if this host does not have it |
| \`{"outpoint": "<txid>_<vout>", "seq": 3}\` | the ordinal in that output, at a step of its lineage: \`0\` and \`-2\` are its origin, \`-1\` its current output; nothing if there is no such step or the origin is unknown here |
| \`{"map": {"app": "shop", "type": "card"}}\` | the current outputs of ordinals whose metadata, merged from the origin on, has all of these entries, with texts as inscribed; a list matches by each of its texts. At most 16 entries. An ordinal is found by its first 16 entries, and by up to 256 if its metadata is long |
| \`{"parent": "<txid>_<vout>"}\` | the current outputs of ordinals whose latest inscription with a parent names this one |
| \`{"contentType": "image/png"}\` | the current outputs of ordinals whose latest content has this type, with any parameters |
| \`{"owner": "<address>"}\` | the unspent coins of this P2PKH address |

The last four accept a \`limit\` of 1 to 100 (default 100), and \`after\`: the last outpoint of the previous page. A page may have
fewer outputs than its limit, because its BEEF is limited in bytes; JSON then says \`"truncated": true\`. Only an empty page is
the last. Ordinals keep their order while they move. The current output of a burnt ordinal is its last one, which is spent.
Except by owner, an ordinal is found only if its origin is known here.
`
