// Names that look like others: BRC-169 section 2.3, whose sets are normative, for the characters of names.

/** Each set is folded to its first member. */
const ALIKE = ['o0', 'l1i', 's5', 'z2', 'b8'] as const
/** Two characters that look like one. The one is folded to the two: the other way, `vvv` and `vw` would differ. */
const PAIRS = [
  ['rn', 'm'],
  ['vv', 'w'],
] as const

const FOLDED = new Map(ALIKE.flatMap((set) => [...set].map((character) => [character, set.charAt(0)])))

/** Names with the same skeleton look alike. */
export function skeletonOf(name: string): string {
  const folded = [...name].map((character) => FOLDED.get(character) ?? character).join('')
  return PAIRS.reduce((text, [pair, one]) => text.replaceAll(one, pair), folded.replaceAll('-', ''))
}

/** Those of the other names that look like this one. */
export function confusablesAmong(name: string, others: Iterable<string>): string[] {
  const skeleton = skeletonOf(name)
  return [...new Set(others)].filter((other) => other !== name && skeletonOf(other) === skeleton)
}

/** Names that differ from this one in one place and look like it, in the order of the places; `limit` of them at most. */
export function lookalikesOf(name: string, limit: number): string[] {
  const found = new Set<string>()
  for (let at = 0; at < name.length; at++) {
    for (const [from, to] of changesAt(name, at)) {
      if (found.size === limit) return [...found]
      found.add(name.slice(0, at) + to + name.slice(at + from.length))
    }
  }
  return [...found]
}

/** The text at a place of a name, and its lookalikes. */
function changesAt(name: string, at: number): [from: string, to: string][] {
  const character = name.charAt(at)
  const alike = ALIKE.find((set) => set.includes(character)) ?? ''
  const changes: [string, string][] = [...alike]
    .filter((other) => other !== character)
    .map((other) => [character, other])
  for (const [pair, one] of PAIRS) {
    if (name.startsWith(pair, at)) changes.push([pair, one])
    if (character === one) changes.push([one, pair])
  }
  if (character === '-' && name.length > 1) changes.push(['-', ''])
  return changes
}
