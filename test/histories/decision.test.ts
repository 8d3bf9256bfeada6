import { FakeChain } from '../support/protocol/fake-chain.js'
import { decide } from './decision.js'
import type { HistoryTransaction } from './history.js'

/** What a transaction of a story spends, when it came, and the height of its own proof. */
type Part = [spends: string[], inserted: number, height?: number]

interface Story {
  parts: Record<string, Part>
  counts: string
  /** What `tm_names` holds. */
  nodes?: string[]
}

/** Small stories: a letter for a transaction, `a0` for its first output; `x` is one that nobody knows. */
const stories: Record<string, Story> = {
  'of two that spend one coin the first to come counts': {
    parts: { b: [['x0'], 1], a: [['x0'], 2] },
    counts: 'b',
  },
  'of two that came together the lesser txid counts': {
    parts: { b: [['x0'], 1], a: [['x0'], 1] },
    counts: 'a',
  },
  'a proof reverses it': { parts: { b: [['x0'], 1], a: [['x0'], 2, 7] }, counts: 'a' },
  'without that proof it is reversed back': { parts: { b: [['x0'], 1], a: [['x0'], 2] }, counts: 'b' },
  'of two that are proven the lower block counts': {
    parts: { b: [['x0'], 1, 8], a: [['x0'], 2, 7] },
    counts: 'a',
  },
  'what is built on a loser is inactive, and what spends the same as that counts': {
    parts: { a: [['x0'], 1], b: [['x0'], 2], c: [['b0', 'y0'], 3], d: [['c0'], 4], e: [['y0'], 5] },
    counts: 'ae',
  },
  'a whole branch is reorganised with a proof far up': {
    parts: { a: [['x0'], 1], b: [['x0'], 2], c: [['b0'], 3], d: [['c0'], 4, 7] },
    counts: 'bcd',
  },
  'one that loses over either of its inputs is inactive, and does not conflict over the other': {
    parts: { a: [['x0'], 1], b: [['x0', 'y0'], 2], c: [['y0'], 3] },
    counts: 'ac',
  },
  'one that came first keeps two others out': {
    parts: { a: [['x0', 'y0'], 1], b: [['x0'], 2], c: [['y0'], 3] },
    counts: 'a',
  },
  'a proof of one double spend of two makes room for the other': {
    parts: { a: [['x0', 'y0'], 1], b: [['x0'], 2, 7], c: [['y0'], 3] },
    counts: 'bc',
  },
  'what needs both of two branches is inactive with either': {
    parts: { a: [['x0'], 1], b: [['x0'], 2], c: [['a0', 'b0'], 3] },
    counts: 'a',
  },
  'what came first by something built on it came first': {
    parts: { b: [['x0'], 3], c: [['b0'], 1], a: [['x0'], 2] },
    counts: 'bc',
  },
  'what spends the same as its own ancestor never counts': {
    parts: { b: [['x0'], 1], c: [['b0'], 1], a: [['x0', 'c0'], 1] },
    counts: 'bc',
  },
  'of a node only mints are spenders': {
    parts: { n: [['x0'], 1], a: [['n0'], 2], b: [['n0'], 3], c: [['n0'], 4] },
    nodes: ['n0', 'b0', 'c0'],
    counts: 'nab',
  },
}

const txid = (letter: string): string => letter.padEnd(64, '0')
const outpoint = ([letter = '', vout = '']: string): string => `${txid(letter)}_${vout}`

function decisionOf({ parts, nodes = [] }: Omit<Story, 'counts'>) {
  const { genesis } = new FakeChain()
  const all = Object.entries(parts)
  const transactions = all.map(([letter, [spends]]): HistoryTransaction => {
    return { ...genesis, txid: txid(letter), spends: spends.map(outpoint), said: [], needsProof: false }
  })
  return decide(
    { byTxid: new Map(transactions.map((each) => [each.txid, each])) },
    {
      insertionOrder: new Map(all.map(([letter, [, inserted]]) => [txid(letter), inserted])),
      proofs: new Map(
        all.flatMap(([letter, [, , height]]) => (height ? [[txid(letter), { height, root: '' }]] : [])),
      ),
      genuine: new Set(nodes.map(outpoint)),
    },
  )
}

test.each(Object.entries(stories))('%s', (_, { counts, ...story }) => {
  const { counts: found } = decisionOf(story)
  expect([...found].sort()).toEqual([...counts].map(txid).sort())
})

test('an inactive one lost to what beat it, or what it is built on', () => {
  const parts: Record<string, Part> = {
    a: [['x0'], 1],
    b: [['x0'], 2],
    c: [['b0'], 3],
    d: [['y0'], 4],
    e: [['y0', 'c0'], 5],
  }
  const { winnersOver } = decisionOf({ parts })
  expect(winnersOver(txid('b'))).toEqual(new Set([txid('a')]))
  expect(winnersOver(txid('c'))).toEqual(new Set([txid('a')]))
  expect(winnersOver(txid('e'))).toEqual(new Set([txid('a'), txid('d')]))
})
