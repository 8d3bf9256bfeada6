import { resolve } from 'node:path'
import { defineConfig } from 'vitest/config'
import base from '../../../vitest.config.js'

/** The same tests, against the package as a consumer installed it: `INSTALLED_PACKAGE` names its folder. None needs a database. */
export default defineConfig({
  root: resolve(import.meta.dirname, '../../..'),
  test: { ...base.test, globalSetup: [] },
  resolve: {
    alias: [
      {
        find: /^(?:\.\.\/){2,}((?:backend\/)?src\/.*)\.js$/,
        replacement: `${process.env.INSTALLED_PACKAGE}/dist/$1.js`,
      },
    ],
  },
})
