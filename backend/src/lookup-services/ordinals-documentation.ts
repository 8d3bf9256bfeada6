export const ORDINALS_LOOKUP_DOCUMENTATION = `# ls_ordinals

Questions about the ordinals and content that \`tm_ordinals\` holds. Every answer is a list of outputs with BEEF.

| query | answer |
| --- | --- |
| \`{"outpoint": "<txid>_<vout>"}\` | that output, where this host holds it; nothing where it does not |
| \`{"outpoint": "<txid>_<vout>", "seq": 3}\` | the ordinal that stands there, at that step of its life: \`0\` and \`-2\` its origin, \`-1\` where it is now; nothing where there is no such step, or its origin is not known here |
`
