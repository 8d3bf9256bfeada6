import { execFile } from 'node:child_process'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { packed } from '../../support/cli/installed-package.js'
import { useServers } from '../../support/server/test-server.js'

const run = promisify(execFile)
const { folder } = useServers()

// Both packages can be published as they are packed. What `npm publish` would correct in a package.json, `npm pkg fix` does.

test.each([
  [
    'minetree',
    ['dist/cli/main.js', 'dist/src/client/index.d.ts', 'backend/src/protocol/beef.ts', 'README.md'],
  ],
  ['minetree-client', ['dist/index.js', 'dist/types/src/client/index.d.ts', 'README.md', 'LICENSE']],
] as const)('npm would publish %s, without a warning', async (name, parts) => {
  const tarball = (await packed(name)).slice('file:'.length)
  const listed = (await run('tar', ['-tzf', tarball], { maxBuffer: 2 ** 26 })).stdout
  const paths = listed
    .trim()
    .split('\n')
    .map((path) => path.replace('package/', ''))
  expect(paths).toEqual(expect.arrayContaining([...parts]))
  expect(paths.filter((path) => /(^|\/)(test|bench|node_modules|\.env)/.test(path))).toEqual([])
  const { stdout: text } = await run('tar', ['-xzOf', tarball, 'package/package.json'])
  const manifest = JSON.parse(text) as Record<'name' | 'version', string> & { bin?: Record<string, string> }
  expect(`${manifest.name}@${manifest.version}`).toMatch(new RegExp(`^${name}@\\d+\\.\\d+\\.\\d+$`))
  expect(manifest).not.toHaveProperty('private')
  const cwd = await folder()
  await writeFile(join(cwd, 'package.json'), text)
  for (const file of Object.values(manifest.bin ?? {})) {
    await mkdir(join(cwd, dirname(file)), { recursive: true })
    await writeFile(join(cwd, file), '')
  }
  expect(await run('npm', ['pkg', 'fix'], { cwd })).toEqual({ stdout: '', stderr: '' })
  expect(await readFile(join(cwd, 'package.json'), 'utf8')).toBe(text)
})
