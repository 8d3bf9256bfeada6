import { spawnSync } from 'node:child_process'
import { resolve } from 'node:path'
import { build } from 'esbuild'

const root = resolve(import.meta.dirname, '../..')

test('benches load without the globals of tests, and one that does not exist is named', async () => {
  const { outputFiles } = await build({
    ...{ absWorkingDir: root, entryPoints: ['bench/main.ts'], packages: 'external', write: false },
    ...{ bundle: true, platform: 'node', format: 'esm' },
  })
  const { status, stderr } = spawnSync(process.execPath, ['--input-type=module', '-', 'nothing'], {
    ...{ cwd: root, input: outputFiles[0]?.text, encoding: 'utf8' },
  })
  expect(stderr).toMatch(/^nothing is no bench\. There are: imports, gateway, constants, .*facts.*\.\n$/)
  expect(status).toBe(1)
})
