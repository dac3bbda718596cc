/* For the browser's modules and their tests; run from the root of the checkout, `make check`. */
import js from "@eslint/js";
import globals from "globals";

const MODULES = "dashboard/src/noisescale_dashboard/assets/modules";
const assigned = (name) => `AssignmentExpression[left.object.name='${name}']`;

export default [
  js.configs.recommended,
  { ignores: ["dashboard/src/noisescale_dashboard/assets/*.min.js"] },
  {
    languageOptions: { ecmaVersion: 2022, sourceType: "module" },
    linterOptions: { reportUnusedDisableDirectives: "error" },
    rules: {
      eqeqeq: "error",
      "max-lines": ["error", { max: 300 }],
      "no-shadow": "error",
      "no-var": "error",
      "object-shorthand": "error",
      "prefer-const": "error",
    },
  },
  {
    files: [`${MODULES}/**/*.js`],
    languageOptions: { globals: globals.browser },
    rules: {
      "no-restricted-syntax": [
        "error",
        ...["window", "globalThis", "self"].map((name) => ({
          selector: assigned(name),
          message: "Globals of ours are set in register.js alone; export it and import it where it is needed.",
        })),
      ],
    },
  },
  {
    /* the one for what Dash and its table look for, the other for the answers of callbacks, which nothing else tells of */
    files: [`${MODULES}/register.js`, `${MODULES}/shell/callbacks.js`],
    rules: { "no-restricted-syntax": "off" },
  },
  {
    files: ["dashboard/src/noisescale_dashboard/assets/boot/*.js"],
    languageOptions: { sourceType: "script", globals: globals.browser },
  },
  {
    files: ["tests/dashboard/modules/**/*.mjs"],
    languageOptions: { globals: { ...globals.node, document: "readonly", window: "readonly" } },
  },
];
