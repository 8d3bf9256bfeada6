import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { proofFact, transactionFact } from '../../../../../backend/src/facts/log.js'
import { makeLog } from '../../../../../backend/src/facts/log-file.js'
import { register, registerFact } from '../../../../../backend/src/facts/registers.js'
import { Pending } from '../../../../../backend/src/facts/state.js'
import { pinTree } from '../../../../../backend/src/graph/pinned-tree.js'
import { utf8 } from '../../../../../backend/src/protocol/bytes.js'
import { prune } from '../../../../../src/server/store/facts/prune.js'
import { recordOf } from '../../../../support/protocol/block.js'
import {
  FakeChain,
  type FakeTransaction,
  inscriptionScript,
  p2pkh,
} from '../../../../support/protocol/fake-chain.js'
import { treeOf, useServers } from '../../../../support/server/test-server.js'
import { checkedFacts, commandOptions, filesWith, inLog } from '../../../../support/storage/fact-store.js'

const servers = useServers()
const DAY = 86_400_000
const NOW = Date.UTC(2026, 0, 31)

let chain: FakeChain
let env: Record<string, string> & { DATA_DIR: string }

beforeEach(async () => {
  chain = new FakeChain()
  const DATA_DIR = join(await servers.folder(), 'store')
  mkdirSync(DATA_DIR)
  env = { ...treeOf(chain.deployment), CHAIN_TRACKER: 'scripts-only', DATA_DIR }
  const settings = new Map([['tracker', 'scripts-only']])
  await pinTree(
    { get: async (name) => settings.get(name), set: async (name, value) => void settings.set(name, value) },
    chain.deployment,
  )
  inLog(DATA_DIR, (sql, log) => {
    sql.exec('pragma journal_mode = wal')
    makeLog(sql)
    for (const [name, value] of settings) log.insert(registerFact(register.setting(name), 1, value))
  })
  stored(chain.genesis)
})

/** Stores a transaction that came so many days ago; unproven by default. */
function stored(
  transaction: FakeTransaction,
  { days = 15, proven = false }: { days?: number; proven?: boolean } = {},
): FakeTransaction {
  inLog(env.DATA_DIR, (sql, log) => {
    const fact = log.insert(transactionFact(transaction))
    sql.run('update log set at = ? where seq = ?', NOW - days * DAY, fact?.seq ?? 0)
    const { proof } = recordOf(transaction, transaction.height)
    if (proven && proof !== undefined) log.insert(proofFact(transaction.txid, proof))
  })
  return transaction
}

/** Stores what the network said last of a transaction. */
function said({ txid }: FakeTransaction, sighting: 'seen' | 'rejected', { days }: { days: number }): void {
  inLog(env.DATA_DIR, (sql, log) => {
    const fact = log.insert(registerFact(register.sighting(txid), 1, sighting))
    sql.run('update log set at = ? where seq = ?', NOW - days * DAY, fact?.seq ?? 0)
  })
}

let bodies = 0
const note = (...inputs: FakeTransaction[]): FakeTransaction =>
  chain.spend({
    inputs: inputs.map((transaction) => ({ transaction, vout: 0 })),
    outputs: [inscriptionScript({ contentType: 'text/plain', body: utf8(`note ${bodies++}`) })],
  })

/** Which of some transactions are left, once the others were dropped and the index is derived again. */
async function left(
  candidates: Record<string, FakeTransaction>,
  { keepsNames = false } = {},
): Promise<string[]> {
  const before = inLog(env.DATA_DIR, (sql) => sql.all('select 1 from log where kind = 1').length)
  const { transactions } = await prune({ ...commandOptions(env), keepsNames, now: NOW })
  const keys = inLog(env.DATA_DIR, (sql) =>
    sql.all('select key from log where kind = 1').map(({ key }) => key.toString('hex')),
  )
  expect(before - keys.length).toBe(transactions)
  // What was dropped is in no file, and the index that follows from the rest is derived by the next command.
  for (const { txid, raw } of Object.values(candidates))
    if (!keys.includes(txid)) expect(filesWith(env.DATA_DIR, raw)).toEqual([])
  expect((await prune({ ...commandOptions(env), keepsNames, now: NOW })).transactions).toBe(0)
  expect(await checkedFacts(env)).toMatchObject({ damaged: [], isCompared: true })
  return Object.keys(candidates).filter((name) => keys.includes(candidates[name]?.txid ?? ''))
}

test('what is unproven, old and unseen is dropped, and nothing else', async () => {
  const [seen, longUnseen, latelyRejected] = [stored(note()), stored(note()), stored(note())]
  said(seen, 'seen', { days: 30 })
  said(longUnseen, 'rejected', { days: 15 })
  said(latelyRejected, 'rejected', { days: 13 })
  const candidates = {
    old: stored(note()),
    proven: stored(note(), { proven: true }),
    recent: stored(note(), { days: 13 }),
    ...{ seen, longUnseen, latelyRejected },
  }
  expect(await left(candidates)).toEqual(['proven', 'recent', 'seen', 'latelyRejected'])
})

test('what something is built on stays, whether that is proven, seen, recent or pending', async () => {
  const parents = [stored(note()), stored(note()), stored(note()), stored(note()), stored(note())] as const
  const [behindProven, behindSeen, behindRecent, behindPending, behindOld] = parents
  stored(note(stored(note(behindProven))), { proven: true })
  said(stored(note(behindSeen)), 'seen', { days: 20 })
  stored(note(behindRecent), { days: 1 })
  const pending = note(behindPending)
  inLog(env.DATA_DIR, (sql) =>
    new Pending(sql).add(pending, [{ txid: behindPending.txid, vout: 0 }], { isWaiting: true }),
  )
  const child = stored(note(behindOld))
  expect(await left({ behindProven, behindSeen, behindRecent, behindPending, behindOld, child })).toEqual([
    'behindProven',
    'behindSeen',
    'behindRecent',
    'behindPending',
  ])
})

test('mints and transfers of names stay where nobody can be asked about them, and the genesis always', async () => {
  const mint = stored(chain.mint('a'))
  const transfer = stored(chain.move(mint, 2, p2pkh(7)))
  const other = stored(note())
  const candidates = { genesis: chain.genesis, mint, transfer, other }
  expect(await left(candidates, { keepsNames: true })).toEqual(['genesis', 'mint', 'transfer'])
  expect(await left(candidates)).toEqual(['genesis'])
})
