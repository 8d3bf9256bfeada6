import { wouldPublish } from '../../support/cli/installed-package.js'

// Both packages can be published as they are.

test.each([
  [
    'minetree',
    ['dist/cli/main.js', 'dist/src/client/index.d.ts', 'backend/src/protocol/beef.ts', 'README.md'],
  ],
  ['minetree-client', ['dist/index.js', 'dist/types/src/client/index.d.ts', 'README.md', 'LICENSE']],
] as const)('npm would publish %s, without a warning', async (name, parts) => {
  const { id, files, warnings } = await wouldPublish(name)
  expect(id).toMatch(new RegExp(`^${name}@\\d+\\.\\d+\\.\\d+$`))
  expect(warnings).toEqual([])
  const paths = files.map(({ path }) => path)
  expect(paths).toEqual(expect.arrayContaining([...parts]))
  expect(paths.filter((path) => /(^|\/)(test|bench|node_modules|\.env)/.test(path))).toEqual([])
})
