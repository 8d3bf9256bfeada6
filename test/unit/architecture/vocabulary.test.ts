import { readdirSync, readFileSync } from 'node:fs'
import { join, relative, resolve } from 'node:path'

// One word a thing: words that the code once had for what every engineer has a word for (`docs/contributing.md`, Words).

const root = resolve(import.meta.dirname, '../../..')

/** Word stems and what is said instead. Identifiers count by their parts: `keepTraits` has `keep` and `traits`. */
const OLD_WORDS: [pattern: RegExp, instead: string][] = [
  [/\btold\b|\btelling\b/, 'new records, the records passed in'],
  [/\bsilen(t|ce|ced|tly)\b/, 'inactive, deactivate'],
  [/\bstandings?\b/, 'status, conflict resolution'],
  [/\brivals?\b/, 'conflicting spend, double spend'],
  [/\bturned\b/, 'reorganised'],
  [/\bsettled?\b|\bunsettled\b/, 'resolve, unresolved'],
  [/\btraits?\b/, 'attribute'],
  [/\bpieces\b/, 'chunks'],
  [/\barrivals?\b/, 'insertion order, transaction log'],
  [/\bremember(ing store|ed reads|ing reads)\b/, 'caching store, memoized'],
  [/\bupkeep\b/, 'index maintenance'],
  [/\bvouch(es|ed|ing)?\b/, 'verify, verified'],
  [/\bharmless\b/, 'escaped'],
  [/\bmade up\b/, 'fake'],
  [/\banew\b/, 'again'],
  [/\bhook notes?\b/, 'hook outbox'],
  [/\brebuild mark\b/, 'checkpoint'],
  [/\bcourse\b/, 'lineage summary'],
]

/** Words of others: a log level of pino, a method of promises. */
const OTHERS = /or silent'|level: 'silent'|'debug', 'silent'|\bor `silent`|allSettled/g

function files(): string[] {
  const below = (folder: string): string[] =>
    readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && /\.(ts|md|html)$/.test(entry.name))
      .map((entry) => relative(root, join(entry.parentPath, entry.name)))
  return [...below('backend/src'), ...below('src'), ...below('docs'), 'README.md']
}

/** A line in lower case, its identifiers and file names split into words. */
function wordsOf(line: string): string {
  return line
    .replace(/([a-z])([A-Z])/g, '$1 $2')
    .replace(/[-_/]/g, ' ')
    .toLowerCase()
}

test('the sources and the docs have none of the old words', () => {
  const found = files().flatMap((file) => {
    const text = readFileSync(join(root, file), 'utf8').replace(OTHERS, '')
    return [file, ...text.split('\n')].flatMap((line, at) => {
      const words = wordsOf(line)
      const old = OLD_WORDS.filter(([pattern]) => pattern.test(words))
      return old.map(([pattern, instead]) => `${file}:${at} ${pattern.source} is now: ${instead}`)
    })
  })
  expect(found).toEqual([])
})
