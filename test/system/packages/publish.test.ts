import { useBuiltCli } from '../../support/cli/built-cli.js'
import { dependent } from '../../support/cli/dependent.js'
import { useServers } from '../../support/server/test-server.js'

// The package as a dependent package uses it: by name, in JavaScript and with its types.

const built = useBuiltCli()
const { folder } = useServers()

const PROGRAM = `
import { layOutFile, layOutFolder, layOutStream, PROFILES, PublishError } from 'minetree/publish'
const lock = Uint8Array.of(0x51)
const bytes = new TextEncoder().encode('hello')
const single = layOutFile({ name: 'a.txt', bytes, lock })
const steps = layOutStream({ name: 'a.txt', bytes, lock, profile: PROFILES.local, streamChunkSize: 2 })
const { outputs, root } = layOutFolder({ entries: [{ name: 'index.html', bytes }], lock, profile: PROFILES.local })
let code = ''
try {
  layOutFile({ name: 'a.txt', bytes, lock: Uint8Array.of(0x6a) })
} catch (error) {
  if (error instanceof PublishError) code = error.code
}
console.log(JSON.stringify([single.satoshis, steps.length, outputs.length, root, code]))
`

test('the publishing helpers are imported by the name of the package', async () => {
  const { run } = await dependent({ built: built.folder(), empty: await folder() })
  expect(JSON.parse(await run(PROGRAM))).toEqual([1, 3, 2, 0, 'BAD_LOCK'])
})

test('they bring their types', async () => {
  const { compile } = await dependent({ built: built.folder(), empty: await folder() })
  await compile(PROGRAM)
  const wrong = PROGRAM.replace('single.satoshis', 'single.satoshi')
  await expect(compile(wrong)).rejects.toMatchObject({ stdout: expect.stringContaining('satoshi') })
})
