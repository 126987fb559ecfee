"""Names and parameters of the tasks in each suite."""

SUITES = {
    "spatial": [
        ("pick_up_the_black_bowl_between_the_plate_and_the_ramekin", 0.10, 3),
        ("pick_up_the_black_bowl_next_to_the_ramekin", 0.25, 4),
        ("pick_up_the_black_bowl_from_table_center", 0.35, 2),
        ("pick_up_the_black_bowl_on_the_cookie_box", 0.55, 5),
        ("pick_up_the_black_bowl_in_the_top_drawer", 0.70, 4),
        ("pick_up_the_black_bowl_on_the_ramekin", 0.85, 3),
        ("pick_up_the_black_bowl_next_to_the_cookie_box", 1.00, 2),
        ("pick_up_the_black_bowl_on_the_stove", 1.15, 5),
    ],
    "object": [
        ("pick_up_the_alphabet_soup_and_place_it_in_the_basket", 0.2, 3),
        ("pick_up_the_cream_cheese_and_place_it_in_the_basket", 0.4, 3),
        ("pick_up_the_salad_dressing_and_place_it_in_the_basket", 0.6, 4),
        ("pick_up_the_bbq_sauce_and_place_it_in_the_basket", 0.8, 4),
        ("pick_up_the_ketchup_and_place_it_in_the_basket", 1.0, 2),
        ("pick_up_the_tomato_sauce_and_place_it_in_the_basket", 1.2, 5),
    ],
}
