import { utf8 } from '../../../backend/src/protocol/bytes.js'
import { parseOutpoint } from '../../../backend/src/protocol/outpoint.js'
import {
  beefOf,
  FakeChain,
  type FakeTransaction,
  inscriptionScript,
  p2pkh,
} from '../../support/protocol/fake-chain.js'
import { treeOf, useServers } from '../../support/server/test-server.js'

// A page is answered from memory until something changes that it shows: what else is written leaves it there.

const servers = useServers()
const chain = new FakeChain()
const server = await servers.start(treeOf(chain.deployment))

const mint = async (name: string): Promise<void> => {
  await server.take(beefOf(chain.mint(name)))
}

const noted = (text: string, parent?: string): Uint8Array =>
  inscriptionScript({
    ...{ contentType: 'text/plain', body: utf8(text) },
    ...(parent !== undefined && { parent: parseOutpoint(parent) }),
  })
const coinOf = () => chain.spend({ inputs: [], outputs: [{ satoshis: 1000, lockingScript: p2pkh(0) }] })

/** Inscribes a coin that is known, so that its origin is. */
async function inscribe(text: string, parent?: string): Promise<FakeTransaction> {
  const coin = coinOf()
  const inscribed = chain.move(coin, 0, noted(text, parent))
  await submit(inscribed, coin)
  return inscribed
}

async function passOn(transaction: FakeTransaction, vout = 0): Promise<FakeTransaction> {
  const next = chain.move(transaction, vout, p2pkh(2))
  await submit(next, transaction)
  return next
}

async function submit(transaction: FakeTransaction, ...sources: FakeTransaction[]): Promise<void> {
  await server.take(beefOf(transaction, { with: sources }), ['tm_ordinals'])
}

/** A page, and whether it was made for this request. */
async function asked(path: string): Promise<{ html: string; isMade: boolean }> {
  const { answers } = server.node.caches
  const before = answers.misses
  const { status, body } = await server.ask(path)
  expect(status).toBe(200)
  return { html: body.toString('utf8'), isMade: answers.misses > before }
}

/** Does something, and says what became of a page that was in memory. */
async function after(path: string, happens: () => Promise<unknown>): Promise<string> {
  await asked(path)
  const { html, isMade } = await asked(path)
  expect(isMade).toBe(false)
  await happens()
  const now = await asked(path)
  if (!now.isMade) return 'kept'
  return now.html === html ? 'as it was' : 'changed'
}

await server.submit(beefOf(chain.genesis))
await mint('b')
await mint('bo')

/** Inscribes a child of an ordinal, which it moves to output 2. */
async function bear(text: string, ordinal: string, parent: { transaction: FakeTransaction; vout: number }) {
  const coin = coinOf()
  const child = chain.spend({
    inputs: [{ transaction: coin, vout: 0 }, parent],
    outputs: [
      { satoshis: 1, lockingScript: noted(text, ordinal) },
      { satoshis: 999, lockingScript: p2pkh(0) },
      { satoshis: 1, lockingScript: p2pkh(3) },
    ],
  })
  await submit(child, coin, parent.transaction)
  return child
}

test('the page of an ordinal is outdated by its own steps and its children', async () => {
  const ordinal = await inscribe('a parent')
  const path = `/ordinal/${ordinal.outpoint(0)}`
  const page = (happens: () => Promise<unknown>) => after(path, happens)
  expect(await page(() => inscribe('something else'))).toBe('kept')
  expect(await page(() => mint('c'))).toBe('kept')
  expect(await page(() => inscribe('a child of another', `${'07'.repeat(32)}_0`))).toBe('kept')
  const child = await bear('a child', ordinal.outpoint(0), { transaction: ordinal, vout: 0 })
  expect((await asked(path)).html).toContain(`/ordinal/${child.outpoint(0)}`)
  expect(await after(`/parent/${ordinal.outpoint(0)}`, () => inscribe('another'))).toBe('kept')
  let last = child
  const second = async () => {
    last = await bear('a second child', ordinal.outpoint(0), { transaction: child, vout: 2 })
  }
  expect(await after(`/parent/${ordinal.outpoint(0)}`, second)).toBe('changed')
  expect(await page(() => passOn(child))).not.toBe('kept')
  expect(await page(() => passOn(last, 2))).toBe('changed')
})

test('the page of an ordinal is outdated by a reorganisation that puts an earlier step into another block', async () => {
  const ordinal = await inscribe('in two blocks')
  await passOn(await passOn(ordinal))
  const path = `/ordinal/${ordinal.outpoint(0)}`
  const height = 900_001
  const change = () => server.take(beefOf(ordinal, { height }), ['tm_ordinals'])
  expect(await after(path, change)).toBe('changed')
  expect((await asked(path)).html).toContain('Origin · in block 900,001')
})

test('the page of a name is outdated by its own steps, by longer names, and by those that look like it', async () => {
  const page = (happens: () => Promise<unknown>) => after('/name/bo', happens)
  expect(await page(() => inscribe('something else'))).toBe('kept')
  expect(await page(() => mint('d'))).toBe('kept')
  expect(await page(() => mint('b0'))).toBe('changed')
  expect(await page(() => mint('bob'))).toBe('changed')
})

test('lists are outdated by what they list', async () => {
  expect(await after('/names', () => inscribe('something else'))).toBe('kept')
  expect(await after('/names', () => mint('e'))).toBe('changed')
  expect(await after('/inscriptions', () => mint('f'))).toBe('kept')
  expect(await after('/inscriptions', () => inscribe('one more'))).toBe('changed')
  expect(await after('/feeds/names.atom', () => mint('h'))).toBe('changed')
  expect(await after('/feeds/inscriptions.atom', () => inscribe('one for readers'))).toBe('changed')
  const ordinal = await inscribe('to be passed on')
  expect(await after('/svc/gateway/newest/inscriptions', () => passOn(ordinal))).toBe('kept')
  expect(await after('/svc/gateway/newest/names', () => mint('g'))).toBe('changed')
})
