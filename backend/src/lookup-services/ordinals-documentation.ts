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
