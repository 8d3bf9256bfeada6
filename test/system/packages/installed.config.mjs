import { resolve } from 'node:path'
import base from '../../../jest.config.mjs'

/** The same tests, against the package as a consumer installed it: `INSTALLED_PACKAGE` names its folder. */
export default {
  ...base,
  rootDir: resolve(import.meta.dirname, '../../..'),
  moduleNameMapper: {
    '^(?:\\.\\./){2,}((?:backend/)?src/.*)\\.js$': `${process.env.INSTALLED_PACKAGE}/dist/$1.js`,
    ...base.moduleNameMapper,
  },
}
