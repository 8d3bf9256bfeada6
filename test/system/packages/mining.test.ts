import { useBuiltCli } from '../../support/cli/built-cli.js'
import { dependent } from '../../support/cli/dependent.js'
import { useServers } from '../../support/server/test-server.js'

// The package as a dependent package uses it: by name, in JavaScript and with its types.

const built = useBuiltCli()
const { folder } = useServers()

const PROGRAM = `
import { deploymentOf, MintError, ownerCommitment, PROFILES, rootLock, searchNonce, solvePlan, termsOf } from 'minetree/mining'
const genesis = { txid: 'ab'.repeat(32), vout: 0 }
const terms = termsOf(PROFILES.local, { difficulty: 12 })
const deployment = deploymentOf(PROFILES.local, { genesis, difficulty: 12 })
if (deployment === undefined) throw new Error('no deployment')
const node = { outpoint: genesis, satoshis: 1, lockingScript: rootLock(terms) }
const ownerLock = Uint8Array.of(0x51)
const noncePrefix = ownerCommitment({ domain: '', ownerLock, deployment })
const search = { seed: new Uint8Array(), character: 'q', difficulty: 12, noncePrefix, workers: 2 }
const { nonce } = await searchNonce(search)
const plan = { node, deployment, character: 'q', nonce, ownerLock }
const { mint, outputs } = solvePlan(plan)
let code = ''
try {
  solvePlan({ ...plan, ownerLock: Uint8Array.of(0x52) })
} catch (error) {
  if (error instanceof MintError) code = error.code
}
console.log(JSON.stringify([mint.name, outputs.length, code]))
`

test('a program that depends on the package searches in workers, and lays out a mint', async () => {
  const { run } = await dependent({ built: built.folder(), empty: await folder() })
  expect(JSON.parse(await run(PROGRAM))).toEqual(['q', 3, 'BAD_NONCE'])
})

test('mining brings its types', async () => {
  const { compile } = await dependent({ built: built.folder(), empty: await folder() })
  await compile(PROGRAM)
  const wrong = PROGRAM.replace('workers: 2', 'workers: "2"')
  await expect(compile(wrong)).rejects.toMatchObject({ stdout: expect.stringContaining('workers') })
})
