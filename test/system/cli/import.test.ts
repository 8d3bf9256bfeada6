import { mkdir, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { toHex, utf8 } from '../../../backend/src/protocol/bytes.js'
import { readTransaction } from '../../../backend/src/protocol/transaction.js'
import { useBuiltCli } from '../../support/cli/built-cli.js'
import {
  beefOf,
  FakeChain,
  type FakeTransaction,
  inscriptionScript,
  p2pkh,
} from '../../support/protocol/fake-chain.js'
import { type Environment, posted, treeOf, useServers } from '../../support/server/test-server.js'
import { storedRows } from '../../support/storage/fact-rows.js'

// The command as it is installed, as a process of its own; what it left is asked over HTTP.

const cli = useBuiltCli()
const servers = useServers()

interface Case {
  chain: FakeChain
  env: Environment
  /** Writes files into a folder of their own, and gives their paths. */
  files(...contents: (Uint8Array | string)[]): Promise<string[]>
}

async function setUp(): Promise<Case> {
  const chain = new FakeChain()
  const folder = await servers.folder()
  let count = 0
  return {
    chain,
    env: { ...treeOf(chain.deployment), DATA_DIR: await servers.folder() },
    files: async (...contents) =>
      await Promise.all(
        contents.map(async (content) => {
          const path = join(folder, `file-${count++}`)
          await writeFile(path, content)
          return path
        }),
      ),
  }
}

const hex = ({ raw }: FakeTransaction): string => toHex(raw)

/** The summary: its first lines, and what is listed below them. */
function summary(lines: {
  admitted: [count: number, of: number, outputs: number]
  known?: number
  sources?: number
  waiting?: string[]
  refused?: string[]
  skipped?: string[]
}): string {
  const { admitted, known = 0, sources = 0, waiting = [], refused = [], skipped = [] } = lines
  const [count, of, outputs] = admitted
  return [
    `admitted ${count} of ${of} transactions (${outputs} outputs), ${known} already known`,
    ...(sources > 0 ? [`only needed by others: ${sources}`] : []),
    ...(waiting.length > 0 ? [`waiting for missing transactions: ${waiting.length}`] : []),
    ...waiting.map((line) => `  ${line}`),
    `not admitted: ${refused.length}`,
    ...refused.map((line) => `  ${line}`),
    `files and lines that are neither BEEF nor raw transactions: ${skipped.length}`,
    ...skipped.map((line) => `  ${line}`),
    '',
  ].join('\n')
}

async function expectNames(env: Environment, mints: FakeTransaction[]): Promise<void> {
  const server = await servers.start(env)
  const outpoints = mints.map((mint) => mint.outpoint(2))
  expect((await server.ask('/svc/names/origins', posted(outpoints))).json).toEqual(
    Object.fromEntries(outpoints.map((outpoint) => [outpoint, true])),
  )
  await server.stop()
}

test('BEEF files in whatever order are admitted with their proofs, and known the second time', async () => {
  const { chain, env, files } = await setUp()
  const mints = chain.mintAll('abc')
  const all = [...mints, chain.genesis].toReversed()
  const paths = await files(...all.map((transaction) => beefOf(transaction)))
  const first = await cli.run(['import', ...paths.toReversed()], env)
  expect(first).toEqual({ code: 0, signal: null, stdout: summary({ admitted: [4, 4, 13] }), stderr: '' })
  const again = await cli.call(['import', ...paths], env)
  expect(again.stdout).toBe(summary({ admitted: [0, 4, 0], known: 4 }))
  expect(again.code).toBe(0)
  await expectNames(env, mints)
  const server = await servers.start(env)
  for (const { txid, height } of all) {
    expect((await server.node.graph.transactions.get(txid))?.proof?.height).toBe(height)
  }
})

test('what a topic has is known, however much of it another topic refuses; what none has is refused with each reason', async () => {
  const { chain, env, files } = await setUp()
  const lockingScript = inscriptionScript({ contentType: 'text/html', body: utf8('page') })
  const mint = chain.mint('a', { trailing: [{ satoshis: 1, lockingScript }] })
  const page = chain.inscribe({ contentType: 'text/html', body: utf8('page') })
  const paths = await files(...[chain.genesis, mint, page].map((transaction) => beefOf(transaction)))
  const narrow = { ...env, CONTENT_TYPES: 'image/*' }
  const refused = [
    `${page.txid}: NO_NODE_SPENT: the transaction spends no known node of the tree; CONTENT_TYPE_NOT_ALLOWED: output 0 has content of type text/html, which this host does not accept`,
  ]
  const first = await cli.call(['import', ...paths], narrow)
  expect(first.stdout).toBe(summary({ admitted: [2, 3, 4], refused }))
  expect(first).toMatchObject({ code: 4, stderr: 'minetree: 1 of 3 transactions refused\n' })
  const again = await cli.call(['import', ...paths], narrow)
  expect(again.stdout).toBe(summary({ admitted: [0, 3, 0], known: 2, refused }))
})

test('raw transactions are accepted only with --trust, and the reason is shown', async () => {
  const { chain, env, files } = await setUp()
  const mints = chain.mintAll('ab')
  const all = [chain.genesis, ...mints]
  const [path = ''] = await files(all.toReversed().map(hex).join('\n'))
  const refused = await cli.call(['import', path], env)
  const why = 'NO_PROOF: a raw transaction; use --trust to accept it without a proof'
  expect(refused.stdout).toBe(
    summary({ admitted: [0, 3, 0], refused: all.map(({ txid }) => `${txid}: ${why}`) }),
  )
  expect(refused).toMatchObject({ code: 4, stderr: 'minetree: 3 of 3 transactions refused\n' })
  expect(storedRows(env.DATA_DIR ?? '').transactions).toEqual([])
  const trusted = await cli.call(['import', '--trust', path], env)
  expect(trusted.stdout).toBe(summary({ admitted: [3, 3, 9] }))
  await expectNames(env, mints)
})

test('a folder of both kinds and of other things is sorted out', async () => {
  const { chain, env } = await setUp()
  const [a, ab] = chain.mintAll('ab')
  if (a === undefined || ab === undefined) throw new Error('no mints')
  const payment = chain.spend({ inputs: [], outputs: [{ satoshis: 5000, lockingScript: p2pkh(1) }] })
  const note = chain.inscribe({ contentType: 'text/plain', body: utf8('note') })
  const folder = await servers.folder()
  await mkdir(join(folder, 'below'))
  await writeFile(join(folder, '1.hex'), `${hex(ab)}\n${hex(note)}\n`)
  await writeFile(join(folder, '2.beef'), beefOf(a, { with: [chain.genesis] }))
  await writeFile(join(folder, 'below/payment.beef'), beefOf(payment))
  await writeFile(join(folder, 'notes.md'), '# not one')
  await writeFile(join(folder, 'below/odd.hex'), `${toHex(beefOf(note))}\nc0ffee\n`)
  const { code, stdout } = await cli.call(['import', '--trust', folder], env)
  expect(code).toBe(0)
  expect(stdout).toBe(
    summary({
      admitted: [4, 5, 10],
      waiting: [
        `${payment.txid}: NO_NODE_SPENT: the transaction spends no known node of the tree; NO_ORDINAL: no output has content or MAP, or receives an admitted ordinal; waiting for ${readTransaction(payment.raw).inputs[0]?.txid}`,
      ],
      skipped: [`${join(folder, 'below/odd.hex')}:2`, join(folder, 'notes.md')],
    }),
  )
  await expectNames(env, [a, ab])
})

test('a second spender of a node is reported, and the others are imported', async () => {
  const { chain, env, files } = await setUp()
  const from = chain.node('')
  const a = chain.mint('a')
  const conflicting = chain.mint('a', { from, ownerLock: p2pkh(9) })
  const ab = chain.mint('ab')
  const paths = await files(beefOf(chain.genesis), beefOf(a), beefOf(conflicting), beefOf(ab))
  const { code, stdout } = await cli.call(['import', ...paths], env)
  expect(code).toBe(4)
  expect(stdout).toBe(
    summary({
      admitted: [3, 4, 9],
      refused: [`${conflicting.txid}: CONFLICT: it is stored, but ${a.txid} counts`],
    }),
  )
  await expectNames(env, [a, ab])
})

test('a BEEF whose subject is neither proven nor has ancestors is reported', async () => {
  const { chain, env, files } = await setUp()
  const note = chain.inscribe({ contentType: 'text/plain', body: utf8('note') })
  const paths = await files(beefOf(note, { proven: false }), beefOf(chain.genesis))
  const { code, stdout } = await cli.call(['import', ...paths], env)
  expect(code).toBe(4)
  expect(stdout).toContain('admitted 1 of 2 transactions (1 outputs), 0 already known\nnot admitted: 1\n')
  expect(stdout).toMatch(new RegExp(`\\n  ${note.txid}: BAD_BODY: the transaction could not be verified`))
})

test('a path that is not there ends the import in one line, before a store is made', async () => {
  const { chain, env, files } = await setUp()
  const paths = await files(beefOf(chain.genesis))
  const missing = join(env.DATA_DIR ?? '', 'missing')
  const { code, stdout, stderr } = await cli.call(['import', ...paths, missing], env)
  expect(code).toBe(2)
  expect(stdout).toBe('')
  expect(stderr).toMatch(/^minetree: cannot read [^\n]+\n$/)
  expect(stderr).toContain(missing)
  expect(await readdir(env.DATA_DIR ?? '')).toEqual([])
})

test('files without a transaction admit nothing, and make no store', async () => {
  const { env, files } = await setUp()
  const [path = ''] = await files('# not one')
  const { code, stdout, stderr } = await cli.call(['import', path], env)
  expect({ code, stdout }).toEqual({ code: 4, stdout: summary({ admitted: [0, 0, 0], skipped: [path] }) })
  expect(stderr).toBe('minetree: the files hold no transactions\n')
  expect(await readdir(env.DATA_DIR ?? '')).toEqual([])
})

test.each([false, true])(
  'coins in one file place the ordinals in another, and are no failure (reversed: %s)',
  async (isReversed) => {
    const { chain, env, files } = await setUp()
    const coin = chain.spend({ inputs: [], outputs: [{ satoshis: 9, lockingScript: p2pkh(0) }] })
    const lockingScript = inscriptionScript({ contentType: 'text/plain', body: utf8('placed') })
    const first = chain.move(coin, 0, lockingScript)
    const moved = chain.move(first, 0, p2pkh(7))
    const beefs = [beefOf(coin), beefOf(first), beefOf(moved)]
    const paths = await files(...(isReversed ? beefs.toReversed() : beefs))
    const { code, stdout } = await cli.call(['import', ...paths], env)
    expect({ code, stdout }).toEqual({ code: 0, stdout: summary({ admitted: [2, 3, 2], sources: 1 }) })
    const server = await servers.start(env)
    const tip = await server.ask(`/content/${first.outpoint(0)}:-1`)
    expect(tip).toMatchObject({ status: 200, headers: { 'x-origin': first.outpoint(0) } })
    expect((await server.ask(`/svc/gateway/metadata/${moved.outpoint(0)}:-1`)).json).toMatchObject({
      sequence: 1,
    })
    const provenance = await server.ask(`/svc/gateway/provenance/${moved.outpoint(0)}`)
    expect(provenance.body.includes(Buffer.from(coin.raw))).toBe(true)
    await server.stop()
  },
)

test('with --json each transaction has a line, and the last line sums up', async () => {
  const { chain, env, files } = await setUp()
  const note = chain.inscribe({ contentType: 'text/plain', body: utf8('note') })
  const paths = await files(beefOf(note), toHex(chain.genesis.raw))
  const { code, stdout, stderr } = await cli.call(['import', '--json', ...paths], env)
  expect(code).toBe(4)
  const lines = stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line))
  expect(lines).toEqual([
    { txid: note.txid, status: 'admitted', outputs: 1 },
    { txid: chain.genesis.txid, status: 'refused', reason: expect.stringMatching(/^NO_PROOF: /) },
    {
      summary: {
        ...{ transactions: 2, admitted: 1, outputs: 1, known: 0, waiting: 0, source: 0, refused: 1 },
        skipped: [],
      },
    },
    { error: '1 of 2 transactions refused', code: 'REFUSED', exitCode: 4 },
  ])
  expect(stderr).toBe('minetree: 1 of 2 transactions refused\n')
})
