"""docs/threat-model.md: what promises something, with the tests that hold it."""

from __future__ import annotations

import re
from pathlib import Path

TOP = Path(__file__).parents[1]

HELD_BY = {
    # Who puts bytes in
    "a package index": "other_bytes_are_refused"
    " a_size_that_is_not_the_file_s an_index_whose_hash_is_not_that_of_its_file",
    "an author of a wheel": "what_pip_refuses_is_refused_by_name a_name_of_reprobuild_s_own_is_refused",
    "an author of a conda": "what_means_harm_is_refused_by_name a_link_of_another_package_is_no_way_out",
    "an author of a Debian": "of_another_key it_sees_the_image_and_nothing_of_the_host there_is_no_network",
    "a container registry": "bytes_that_are_not_those_listed_are_an_error"
    " a_bad_base_is_refused_with_its_place",
    "a registry of layers": "who_does_not_have_the_record_gets_nothing_of_it"
    " what_is_made_over_a_taken_layer_stays_with_its_record",
    "a registry, index or": "a_peer_that_drips_is_given_up"
    " a_server_that_drips_is_given_up an_endless_redirect_body an_answer_that_never_ends_does_so_here"
    " a_server_elsewhere_redirects_to_nothing_on_this_machine",
    "a registry that redirects": "a_password_goes_to_the_registry_alone"
    " an_identity_token_does_not_follow_a_redirect"
    " a_registry_elsewhere_names_no_token_server_on_this_machine an_upload_that_is_redirected"
    " a_token_server_s_redirect_reaches_nothing_on_this_machine",
    "a bundle given": "a_bundle_with_another_manifest_is_refused_by_name"
    " a_bundle_with_other_members_is_refused_by_name",
    "an archive or layout": "a_clean_description_beside_an_evil_one a_size_that_is_not_the_blob_s"
    " a_manifest_of_docker_with_keys_in_another_case"
    " what_shows_other_files_once_the_layer_is_mounted_is_refused",
    "an author of a base": "a_layer_that_reaches_out_is_refused"
    " a_device_node_is_refused a_size_out_of_reason",
    "whoever edits a lock": "a_bad_lock_is_refused_with_the_place a_file_address_that_is_gone_or_another"
    " a_hostile_name_does_not_reach_the_dockerfile variables_that_the_request_does_not_give_are_named"
    " a_lock_reaches_no_server_on_the_link_that_no_setting_names"
    " a_rebuild_does_not_take_the_store_s_word_for_what_a_source_gives",
    "whoever edits a request": "a_lock_for_another_request_is_refused_with_the_keys",
    "the author of a file": "a_file_outside_the_project_is_not_read nor_is_a_link_in_the_place_of_the_file"
    " a_file_has_a_limit a_marker_with_a_line_break_is_refused"
    " an_import_parses_so_many_requirements_and_no_more",
    "the author of a receipt": "what_is_not_of_its_form_is_named nothing_runs_that_the_user_has_not_agreed_to"
    " folders_are_found_from_the_project_and_lead_nowhere_else no_link_is_followed_out_of_a_folder",
    "whoever made the project": "no_filter_of_the_repository_is_run"
    " no_program_of_a_submodule_or_of_an_included_file_is_run a_repository_that_has_no_objects_fetches_none"
    " settings_of_the_repository_that_the_user_is_in_reach_no_server"
    " settings_of_the_project_choose_no_python",
    "an image that has passed": "what_has_passed_here_is_not_tested_again",
    "a lock built earlier": "what_is_beneath_is_in_the_key"
    " a_base_is_in_the_key_of_all_that_its_programs_make",
    "a derived image": "each_changed_file_is_named a_cache_that_leads_a_locked_name_elsewhere"
    " the_files_of_shells_and_the_homes_of_users an_entry_point_that_runs_before_python"
    " a_file_that_loads_code_is_named",
    "another user of": "another_user_of_the_machine_gets_at_nothing",
    "The sandbox": "there_is_no_network"
    " a_bind_has_no_devices_and_no_setuid what_takes_the_machine_is_stopped",
    # Packages and the layer cache
    "Wheels": "what_pip_refuses_is_refused_by_name a_wheel_needs_one_dist_info_with_a_record",
    "Conda packages": "what_means_harm_is_refused_by_name what_unpacks_to_too_much",
    "A channel's list": "a_solver_that_takes_the_machine_is_stopped a_channel_that_drips_is_given_up",
    "The image's interpreter": "a_path_that_was_not_asked_for another_head a_size_out_of_reason",
    "The layer cache": "what_is_beneath_is_in_the_key a_key_changes_with_its_wheel_and_with_no_other",
    "Damage in the home": "a_blob_with_one_changed_byte_is_named_removed_and_made_again"
    " a_seal_holds_content_and_name",
    "Names that are": "a_name_of_reprobuild_s_own_is_refused",
    "The environment's": "the_environment_s_interpreter_is_no_wheel_s_to_replace",
    "File names": "a_name_forges_no_line_of_the_file_manifest",
    # A base image
    "Reading": "what_no_layer_may_contain_is_refused a_file_that_claims_any_size_is_refused"
    " what_is_below_a_link_or_file_of_a_lower_layer_is_refused"
    " a_header_of_any_length_is_not_read_into_memory what_engines_unpack_in_another_way_is_refused"
    " what_our_reader_reads_is_what_an_engine_unpacks"
    " a_folder_that_a_layer_implies_over_one_of_other_rights_is_refused"
    " a_layer_that_removes_what_it_has_made_is_refused",
    "Unpacking": "a_link_to_the_host_is_a_link_and_no_more setuid_files_keep_their_bit no_layer_reaches_out",
    "Running": "the_program_is_root_and_alone the_time_limit_kills_all_that_it_has_started"
    " the_boot_and_the_kernel_s_command_line_are_hidden",
    "What it leaves": "all_is_listed_and_nothing_is_followed folders_deeper_than_a_stack_are_read"
    " a_tree_goes_and_what_its_links_lead_to_stays",
    "What a lock says": "a_bad_base_is_refused_with_its_place",
    "Every program of": "what_takes_the_machine_is_stopped uv_is_held_to_the_memory_of_a_step",
    "root, control groups": "groups_of_version_1_are_made_below_the_own_one",
    "a user or container": "groups_of_version_2_are_made_where_one_above_has_the_controllers",
    "others: most ordinary": "without_any_the_memory_of_a_run_is_not_promised",
    "A `run` may take": "a_limit_that_cannot_be_set_is_an_error no_amount_of_memory",
    "A package without a wheel": "a_build_has_no_network"
    " a_build_writes_to_its_folder_alone a_wheel_of_another_package_is_refused"
    " a_bomb_is_refused_before_it_is_unpacked the_boot_and_the_kernel_s_command_line_are_hidden",
    # What is inherent
    "Evidence about a configuration": "other_layers_below_a_signed_configuration",
    "Evidence can be": "without_keys_unsigned_evidence_counts_and_has_no_signer",
    "`diff` reads locks": "a_newer_pip_from_another_host_can_move_behaviour_and_the_host_is_named"
    " a_newer_pip_of_another_channel_can_move_behaviour a_newer_tool_of_the_system_by_its_place"
    " a_newer_pip_from_a_host_of_the_old_lock_cannot_if_it_is_pip",
    "Docker shows no": "a_daemon_whose_disk_is_elsewhere",
    "Of extended attributes": "a_locked_file_with_capabilities_is_named",
    "`check` believes": "a_manifest_that_was_rewritten_is_named_and_not_believed",
    "`check` does not run": "the_lines_that_installers_of_tools_write_are_named_and_no_difference"
    " what_nobody_here_can_judge_is_named_and_is_no_difference",
    "`compare` compares": "equal_trees",
}
"""The beginning of each, and the names of its tests without ``test_``."""

SAYS_ALONE = (
    *(
        "Who may put",
        "1. **The host",
        "Its layers are",
        "With runc,",
        "A wheel's own code",
        "A lock is as good",
    ),
    *("Fetching a base", "`docker build` of", "`run` runs what", "Take new locks", "Build from the lock"),
    *("Build as an ordinary", "Report a hole"),
)
"""What explains, advises, or says what is not held."""


def units() -> list[str]:
    text = (TOP / "docs/threat-model.md").read_text()
    blocks = (block.strip() for block in re.split(r"\n(?=- |\| |\*\*|\n|#)", text))
    heads = ("#", "|--", "| Who |", "| Where |")
    return [
        re.sub(r"^(?:- |\| )?(?:\*\*)?", "", block)
        for block in blocks
        if block and not block.startswith(heads)
    ]


def test_every_promise_has_its_tests() -> None:
    found = units()
    known = (*HELD_BY, *SAYS_ALONE)
    plain = [unit.replace("**", "") for unit in found]
    known = tuple(each.replace("**", "") for each in known)
    assert [unit[:60] for unit in plain if not unit.startswith(known)] == []
    assert [each for each in known if not any(unit.startswith(each) for unit in plain)] == []


def test_the_tests_are_there() -> None:
    here = {
        name
        for path in (TOP / "tests").rglob("test_*.py")
        for name in re.findall(r"def test_(\w+)", path.read_text())
    }
    named = {name for names in HELD_BY.values() for name in names.split()}
    assert sorted(named - here) == []
